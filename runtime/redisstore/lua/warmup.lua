-- A prepaid bucket without a burst that also stores idle time. a is the period, and b is the most time that it stores. Stored time above
-- half of b is cold: its permits cost up to three times as much. When permits are given back, text has three numbers:
--
--   price, price_stored  how much longer than usual the charge lasts, and the stored time that it used up
--   own_debt             when the charge is paid; no later call runs before
local states, bucket = use('states'), complete(use('bucket'))
local warmup = setmetatable({}, { __index = bucket })
local floor, max, min = math.floor, math.max, math.min

function warmup.prepare(c)
  bucket.prepare(c)
  if c.cost < 0 then
    local price, stored, own_debt = string.match(c.text, '(%d+) (%d+) (%d+)')
    c.price, c.price_stored, c.own_debt = tonumber(price), tonumber(stored), tonumber(own_debt)
  end
end

-- Loads the state, and the idle time that is stored by now.
function warmup.check(c, now)
  local earliest, found = bucket.check(c, now)
  local stored = c.s
  if c.x < now then stored = stored + now - c.x end
  c.stored = min(c.b, stored)
  return earliest, found
end

function warmup.write(c)
  states.set(c.key, pack('<Bdddd', bucket.newest, c.stored, c.x, c.y, c.limit), c.x + 1 + c.b)
end

function warmup.commit(c, n, now)
  local above = max(0, c.stored - floor(c.b / 2))
  local worth = bucket.gain(c, 0, 0, n)
  local cold = min(above, worth)
  local extra, used_up = bucket.mul_div(2 * cold, 2 * above - cold, c.b), min(c.stored, worth)
  bucket.add_permits(c, n, now)
  c.x, c.stored = c.x + extra, c.stored - used_up
  if used_up > 0 then states.add_note(pack('<BBdd', c.number, PRICE, extra, used_up)) end
  warmup.write(c)
end

-- The state has the stored time in place of the time of the last charge. If the bucket is in debt beyond the end of the charge's own debt,
-- later calls have been charged from there on, and nothing comes back.
function warmup.give_back(c, n, now, at)
  c.s = c.x + min(c.y, 1) <= c.own_debt and at or c.own_debt
  if not bucket.subtract(c, n, now, at) then return end
  c.stored = min(c.b, c.stored + c.price_stored)
  warmup.write(c)
end

warmup.give = warmup.give_back -- also gives back places: the state does not know them
