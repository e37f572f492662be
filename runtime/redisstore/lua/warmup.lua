-- A prepaid bucket without a burst whose rate ramps up after idling. The idle time is stored, up to b; a is the period. Stored time
-- above half of b is cold: its permits cost up to three times as much.
local bucket = use('bucket')
local warmup = setmetatable({ has_price = true }, { __index = bucket })

-- Returns m*n/divisor, rounded up. Each has at most 38 bits, but the product may have more than the 53 of a double.
local function mul_div(m, n, divisor)
  local quotient, rest = 0, 0
  for _, unit in ipairs { 67108864, 8192, 1 } do
    local digit = floor(m / unit)
    local dividend = rest * 8192 + digit * n
    m, rest = m - digit * unit, dividend % divisor
    quotient = quotient * 8192 + (dividend - rest) / divisor
  end
  return quotient + min(rest, 1)
end

-- Loads what is stored by now.
function warmup.check(c, now)
  local earliest = bucket.check(c, now)
  c.extra = nil
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
  c.extra, c.used_up = mul_div(2 * cold, 2 * above - cold, c.b), min(c.stored, worth)
  bucket.add(c, n, now)
  c.x, c.stored = c.x + c.extra, c.stored - c.used_up
  warmup.write(c)
end
