-- A prepaid bucket without a burst that also stores idle time. a is the period, and b is the most time that it stores. Stored time above
-- half of b is cold: its permits cost up to three times as much.
local bucket = use('bucket')
local warmup = setmetatable({}, { __index = bucket })

-- Loads the state, and the idle time that is stored by now.
function warmup.check(c, now)
  local earliest = bucket.check(c, now)
  local stored = c.s or c.b
  if c.x < now then stored = stored + now - c.x end
  c.stored = min(c.b, stored)
  return earliest
end

function warmup.write(c)
  set(c.key, pack('<Bdddd', LAYOUT, c.stored, c.x, c.y, c.limit), c.x + 1 + c.b)
end

function warmup.commit(c, n, now)
  local above = max(0, c.stored - floor(c.b / 2))
  local worth = bucket.gain(c, 0, 0, n)
  local cold = min(above, worth)
  local extra, used_up = bucket.mul_div(2 * cold, 2 * above - cold, c.b), min(c.stored, worth)
  bucket.add(c, n, now)
  c.x, c.stored = c.x + extra, c.stored - used_up
  if used_up > 0 then add_note(pack('<BBdd', c.number, 2, extra, used_up)) end
  warmup.write(c)
end
