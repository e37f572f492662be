-- Buckets: the generic cell rate algorithm. The state is a string: LAYOUT, s, x, y, z. The bucket is full again at x + y/z, its theoretical
-- arrival time; z is the limit at the last charge. s is when the key expires, or a little earlier; of a warm-up it is the idle time that is
-- still stored at x. a is the period, and b the burst. In a prepaid bucket the next call pays for a debt. When permits are given back, text
-- has four numbers, which are 0 if they are missing: the price of the charge, which is how much longer than usual it lasts, and the stored
-- time that it used up; the latest time until which calls that already ran can have put a prepaid bucket in debt; and how long leases of
-- the rule last.
local bucket = {}

local LONGEST = 36600 * DAY -- a bucket may take a hundred years to be full
local MAX_DEBT = DAY -- how far a charge beyond the limit carries an empty bucket ahead
local FARTHEST = LONGEST + HORIZON -- a bucket is full again by then
local NAMES = { 's', 'x', 'y', 'z', time = 'x' }

-- Adds to a time, whole and in parts of limit, the time in which a bucket gains n permits. The products are exact, as limit and n
-- are at most 10^7.
local function gain(c, x, y, n)
  local limit = c.limit
  x, y = x + n * c.each, y + n * c.each_parts
  if y >= 0 and y < limit then return x, y end
  local left = y % limit
  return x + (y - left) / limit, left
end

bucket.gain = gain

-- Rounds a time up to whole microseconds.
local function up(x, y) return x + min(y, 1) end

-- Returns the time by which a bucket that is full at a time has gained n permits more.
function bucket.after(c, at, n) return up(gain(c, at, 0, n)) end

-- Returns, as a negative number, how many permits may be missing from a full bucket so that n permits still pass.
local function needed(c, n) return c.prepaid and -c.burst or n - c.burst end

-- Computes what is the same for all subjects: how long a permit takes, and, as a negative number, how long before the bucket is full the
-- claim fits.
function bucket.prepare(c)
  c.prepaid = c.kind == PREPAID or c.kind == WARMUP
  c.burst = c.kind == WARMUP and 0 or c.b
  c.each_parts = c.a % c.limit
  c.each = (c.a - c.each_parts) / c.limit
  c.lead, c.lead_parts = gain(c, 0, 0, needed(c, c.cost))
  if c.cost < 0 then
    local price, stored, own_debt, lease = string.match(c.text .. ' 0 0 0 0', '(%d+) (%d+) (%d+) (%d+)')
    c.price, c.price_stored, c.own_debt, c.lease = tonumber(price), tonumber(stored), tonumber(own_debt), tonumber(lease)
  end
end

-- Returns m*n/divisor, rounded up, and at most LONGEST. All of them may have 38 bits; or m may have 52, and n and the divisor 24. So the
-- product may have more than the 53 of a double.
local function mul_div(m, n, divisor)
  local quotient, rest = 0, 0
  for _, unit in ipairs { 67108864, 8192, 1 } do
    local digit = floor(m / unit)
    local dividend = rest * 8192 + digit * n
    m, rest = m - digit * unit, dividend % divisor
    quotient = quotient * 8192 + (dividend - rest) / divisor
  end
  return min(LONGEST, quotient + min(rest, 1))
end

bucket.mul_div = mul_div

-- After a change of the limit as many permits are missing as before. Debts keep their time: what a prepaid bucket lacks beyond its
-- burst, and all that a warm-up lacks.
local function adapt(c, now, x, y, z)
  x = up(x, y)
  if x <= now or z == 0 then return x end
  local missing = x - now
  if c.prepaid then missing = min(missing, mul_div(c.a, c.burst, z)) end
  return x - missing + mul_div(missing, z, c.limit)
end

-- Returns the first time, not before from, at which the bucket lacks no more than permits, which is negative.
local function lacks(c, permits, now, from)
  local x, y = c.x, c.y
  if x < now then x, y = now, 0 end
  return max(from, up(gain(c, x, y, permits)))
end

-- Returns s, x and y of a state that has another limit, another layout or damage. Unless s is stored time, it is 0, so that the whole state
-- is written next.
local function convert(c, state, now)
  local b = read_groups(c, state, NAMES, -1, now + FARTHEST)[1] -- a time that has come counts
  if not b then return nil, -1, 0 end
  if b.z ~= c.limit then b.x, b.y = adapt(c, now, b.x, b.y, b.z), 0 end
  return c.kind == WARMUP and b.s or 0, b.x, b.y
end

-- Loads s, x and y as they are at the claim's limit. Without a state the bucket is full since long ago.
function bucket.check(c, now)
  local state, s, x, y = call('GET', c.key), nil, -1, 0
  if state then
    local layout, limit
    if #state == 33 then layout, s, x, y, limit = parse('<Bdddd', state) end
    if not (layout == LAYOUT and limit == c.limit and x <= now + FARTHEST and y >= 0 and x % 1 + y % 1 == 0) then
      s, x, y = convert(c, state, now)
    end
  end
  c.s, c.x, c.y = s, x, y
  if x < now then x, y = now, 0 end
  x, y = x + c.lead, y + c.lead_parts
  if y > 0 then x = x + (y > c.limit and 2 or 1) end
  return x > now and x or now
end

function bucket.earliest(c, n, now, from) return lacks(c, needed(c, n), now, from) end

function bucket.room(c, now)
  local burst = c.burst
  if burst == 0 then return lacks(c, 0, now, now) > now and 0 or 1 end
  local n = min(burst, burst - floor(((c.x - now) * c.limit + c.y) / c.a)) -- one too many, as it is not rounded up
  while n > 0 and lacks(c, n - burst, now, now) > now do n = n - 1 end
  return max(0, n)
end

function bucket.full(c, now) return lacks(c, 0, now, now) end

-- A bucket keeps a place only at the time that it dictates itself. A later place, because of another rule of the call, would carry
-- it ahead for everybody.
function bucket.reserves(c, now, at) return bucket.earliest(c, c.cost, now, now) == at end

local function add(c, n, now)
  local x, y = c.x, c.y
  if x < now then x, y = now, 0 end
  c.x, c.y = gain(c, x, y, n)
end

bucket.add = add

local function write(c)
  local s, expiry = c.s, c.x + 1
  if s and expiry <= s then
    call('SETRANGE', c.key, '9', pack('<ddd', c.x, c.y, c.limit))
    return
  end
  if s then expiry = expiry + floor(c.a / 8) end -- so that under load most calls find it late enough
  set(c.key, pack('<Bdddd', LAYOUT, expiry, c.x, c.y, c.limit), expiry)
end

function bucket.commit(c, n, now)
  add(c, n, now)
  write(c)
end

bucket.write = write

-- Charges n permits beyond the limit. Notes by how much the debt would last too long.
function bucket.charge(c, n, now)
  local before = c.x
  add(c, n, now)
  local most = max(before, gain(c, now, 0, c.burst) + MAX_DEBT)
  local beyond = c.x - most
  if beyond >= 0 then
    c.x, c.y = most, 0
    add_note(pack('<BBdd', c.number, 2, beyond, 0))
  end
  c.is.write(c)
end

function bucket.last(c, n, now, at) return up(gain(c, c.x - c.price, c.y, needed(c, n) - n)) <= at end

-- Reports whether there may be calls that wait for other places than the charge's. If the debt of a prepaid bucket lasts longer than that
-- of calls that ran, others wait.
local function others_wait(c, now, at)
  local is_place = at > now and c.free_key
  if is_place or lacks(c, -c.burst, now, now) <= now then return false end
  return not c.prepaid or up(c.x, c.y) > c.own_debt
end

-- Gives back what has not refilled since the charge. What has refilled is lost: without the charge the bucket would be no fuller. A later
-- lease may have moved the bucket ahead by as long as a lease lasts, which the state does not show, so that time counts as refilled. While
-- others wait, nothing goes back: their places stay, so the bucket would have run over.
function bucket.give_back(c, n, now, at)
  local refilled = max(0, now + c.lease - at)
  if not c.prepaid and up(gain(c, c.x, c.y, -n)) <= at then refilled = 0 end -- this was the last charge
  if refilled > (gain(c, c.price, 0, n)) or c.x < now or others_wait(c, now, at) then return end
  c.x, c.y = gain(c, c.x - c.price + refilled, c.y, -n)
  if c.stored then c.stored = min(c.b, c.stored + c.price_stored) end
  c.is.write(c)
end
