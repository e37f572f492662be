-- Buckets: the generic cell rate algorithm. The state is a string: LAYOUT, s, x, y, z.
--
--   x, y, z  the bucket is full again at x + y/z, which is called the theoretical arrival time; z is the limit at the last charge
--   s        when the key expires, or a little earlier; in a warm-up, the idle time that is still stored at x
--
-- In a claim, a is the period and b is the burst. A call on a prepaid bucket may leave it in debt. The next call waits until the debt is
-- paid. When permits are given back, text has four numbers, which are 0 if they are missing:
--
--   price, price_stored  of a warm-up: how much longer than usual the charge lasts, and the stored time that it used up
--   own_debt             a prepaid bucket can be in debt until this time for calls that have run; a longer debt is for waiting calls
--   lease                how long a lease of the rule lasts
local bucket = {}

local LONGEST = 36600 * DAY -- a bucket may take a hundred years to be full
local MAX_DEBT = DAY -- how long the debt of a charge beyond the limit may last
local FARTHEST = LONGEST + HORIZON -- a bucket is full again by then
local NAMES = { 's', 'x', 'y', 'z', time = 'x' }

-- Adds the time in which a bucket gains n permits to the time x + y/limit. The products are exact, because limit and n are at most 10^7.
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

-- Returns when a bucket has gained n permits since a given time.
function bucket.after(c, at, n) return up(gain(c, at, 0, n)) end

-- Returns minus the number of permits that may be missing from the bucket for n permits to pass.
local function needed(c, n) return c.prepaid and -c.burst or n - c.burst end

-- Computes what is the same for all subjects. each and each_parts are the time in which the bucket gains one permit. The claim
-- fits before the bucket is full: lead and lead_parts are how long before, as a negative time.
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

-- Returns m*n/divisor, rounded up, but at most LONGEST. All three may have 38 bits, or m may have 52 bits, and n and the divisor 24. The
-- product may have more bits than the 53 of a double.
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

-- Returns when the bucket is full again at the claim's limit. A change of the limit leaves the number of missing permits as it is, but
-- debts keep their time. The debt of a prepaid bucket is what it lacks beyond its burst; the debt of a warm-up is all that it lacks.
local function adapt(c, now, x, y, z)
  x = up(x, y)
  if x <= now or z == 0 then return x end
  local missing = x - now
  if c.prepaid then missing = min(missing, mul_div(c.a, c.burst, z)) end
  return x - missing + mul_div(missing, z, c.limit)
end

-- Returns the first time, not before from, at which the bucket lacks no more than -permits permits.
local function lacks(c, permits, now, from)
  local x, y = c.x, c.y
  if x < now then x, y = now, 0 end
  return max(from, up(gain(c, x, y, permits)))
end

-- Returns s, x and y of a state that has another limit, another layout or damage. A damaged state counts as none. If s is not stored time,
-- it becomes 0, so that the next write replaces the whole state.
local function convert(c, state, now)
  local b = read_groups(c, state, NAMES, -1, now + FARTHEST)[1] -- -1 keeps a time that has come
  if not b then return nil, -1, 0 end
  if b.z ~= c.limit then b.x, b.y = adapt(c, now, b.x, b.y, b.z), 0 end
  return c.kind == WARMUP and b.s or 0, b.x, b.y
end

-- Loads s, x and y, converted to the claim's limit. Without a state, the bucket has been full for a long time.
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
  local n = min(burst, burst - floor(((c.x - now) * c.limit + c.y) / c.a)) -- may be one too many: the missing permits are rounded down
  while n > 0 and lacks(c, n - burst, now, now) > now do n = n - 1 end
  return max(0, n)
end

function bucket.full(c, now) return lacks(c, 0, now, now) end

-- A bucket keeps a place only at the time at which the bucket itself would admit the claim. If another rule of the call needs a later
-- place, the bucket must not keep it: that would delay everybody who shares the bucket.
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
  if s then expiry = expiry + floor(c.a / 8) end -- so that under load most calls need not set it again
  set(c.key, pack('<Bdddd', LAYOUT, expiry, c.x, c.y, c.limit), expiry)
end

function bucket.commit(c, n, now)
  add(c, n, now)
  write(c)
end

bucket.write = write

-- Charges n permits, even beyond the limit. If the debt would last too long, it cuts the debt, and notes by how much.
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

-- Reports whether other calls may be waiting for places behind the charge. A charge that is a place itself is the last one here: see
-- places.give_back. A prepaid bucket may also be in debt for calls that have run, but not after own_debt.
local function others_wait(c, now, at)
  local is_place = at > now and c.free_key
  if is_place or lacks(c, -c.burst, now, now) <= now then return false end
  return not c.prepaid or up(c.x, c.y) > c.own_debt
end

-- Gives back the permits that the bucket has not regained since the charge. A later lease may have set the bucket's time ahead by the
-- length of a lease. The state does not show that, so what the bucket gains in that time counts as regained, too. While other calls wait,
-- nothing is given back: their places stay as they are, and meanwhile the bucket would have run over.
function bucket.give_back(c, n, now, at)
  local refilled = max(0, now + c.lease - at)
  if not c.prepaid and up(gain(c, c.x, c.y, -n)) <= at then refilled = 0 end -- this was the last charge
  if refilled > (gain(c, c.price, 0, n)) or c.x < now or others_wait(c, now, at) then return end
  c.x, c.y = gain(c, c.x - c.price + refilled, c.y, -n)
  if c.stored then c.stored = min(c.b, c.stored + c.price_stored) end
  c.is.write(c)
end
