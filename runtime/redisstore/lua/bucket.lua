-- Buckets: the generic cell rate algorithm. The state is a string: the byte 2, and then s, x, y, z.
--
--   x, y, z  the bucket is full again at x + y/z, which is called the theoretical arrival time; z is the limit at the last ask
--   s        the time of the last charge, or of the first call at the limit z if that is later. A call that waits is charged at its
--            place. In a warm-up, s is the idle time that is still stored at x
--
-- After some changes of the limit four more numbers follow: cut, old_full, 0, 0.
--
--   old_full  after a raise of the limit, when the bucket would have been full without it
--   cut       the time from which the present limit holds, and before which no call is admitted. It is set if the limit is lowered
--             before old_full, or changes while calls wait. Permits charged before cut do not come back, because the bucket may have
--             gained them at a faster rate
--
-- The key expires MEMORY after a step of time, the first that ends after x. So under load most calls need not set it again. In layout 1, s
-- was when the key expires.
--
-- In a claim, a is the period and b is the burst. A call on a prepaid bucket may leave it in debt. The next call waits until the debt is
-- paid.
local bucket = {
  counts_running = false, load = false, prepare = false, check = false, commit = false, make_others = false,
}

local FARTHEST = LONGEST + HORIZON -- a bucket is full again by then
local NEWEST = 2 -- the newest layout

-- Adds the time in which a bucket gains n permits to the time x + y/limit. The products are exact, because limit and n are at most 10^7.
local function gain(c, x, y, n)
  local limit = c.limit
  x, y = x + n * c.each, y + n * c.each_parts
  if y >= 0 and y < limit then return x, y end
  local left = y % limit
  return x + (y - left) / limit, left
end

-- Computes what is the same for all subjects. step is the length of a step. each and each_parts are the time in which the bucket gains one
-- permit. lead and lead_parts are when the claim fits, counted from the time at which the bucket is full, so they are 0 or less.
function bucket.prepare(c)
  c.prepaid = c.kind == PREPAID or c.kind == WARMUP
  c.burst, c.step = c.kind == WARMUP and 0 or c.b, math.floor(c.a / 8) + 1
  c.each_parts = c.a % c.limit
  c.each = (c.a - c.each_parts) / c.limit
  c.lead, c.lead_parts = gain(c, 0, 0, c.prepaid and -c.burst or c.cost - c.burst)
end

-- Loads the state, converted to the claim's limit. Without a state, the bucket has been full for a long time.
function bucket.check(c, now)
  local state, s, x, y, cut, old_full, ends = call('GET', c.key), -1, -1, 0, 0, 0, 0
  local changed
  if state then
    local layout, limit
    if #state == 33 then layout, s, x, y, limit = parse('<Bdddd', state) end
    if layout == NEWEST and limit == c.limit and x <= now + FARTHEST and y >= 0 and x % 1 + y % 1 == 0 then
      ends = x - x % c.step + c.step
    else
      s, x, y, cut, old_full, changed = complete(bucket).convert(c, state, now)
    end
  end
  c.s, c.x, c.y, c.cut, c.old_full, c.ends = s, x, y, cut, old_full, ends
  if x < now then x, y = now, 0 end
  x, y = x + c.lead, y + c.lead_parts
  if y > 0 then x = x + (y > c.limit and 2 or 1) end -- rounds up; y is below 2 * limit
  if x < cut then x = cut end
  return x > now and x or now, changed and CHANGED
end

local function add_permits(c, n, now)
  local x, y = c.x, c.y
  if x < now then x, y = now, 0 end
  c.x, c.y = gain(c, x, y, n)
  if 0 < c.old_full and c.old_full <= now then c.cut, c.old_full = 0, 0 end
end

local function write(c)
  local x, old_full = c.x, c.old_full
  local changes = old_full > 0 and pack('<dddd', c.cut, old_full, 0, 0) or ''
  local gone = math.max(x - x % c.step + c.step, old_full) + MEMORY
  use('states').set(c.key, pack('<Bdddd', NEWEST, c.s, x, c.y, c.limit) .. changes, gone)
end

-- Writes only s, x and y if the key's expiry stays.
function bucket.commit(c, n, now, at)
  add_permits(c, n, now)
  local s, x = c.s, c.x
  if at > s then s = at end
  if x < c.ends then return call('SETRANGE', c.key, '1', pack('<ddd', s, x, c.y)) end
  c.s = s
  write(c)
end

-- What follows is made when a call first uses it.

local floor, max, min = math.floor, math.max, math.min

-- Rounds a time up to whole microseconds.
local function up(x, y) return x + min(y, 1) end

-- Returns the first time, not before from, at which the bucket is as full as permits says: see needed.
local function lacks(c, permits, now, from)
  local x, y = c.x, c.y
  if x < now then x, y = now, 0 end
  return max(from, c.cut, up(gain(c, x, y, permits)))
end

-- Returns at least -MAX_BUCKET, however large the debt is.
function bucket.room(c, now)
  local burst, x, y = c.burst, c.x, c.y
  if burst == 0 then return lacks(c, 0, now, now) > now and 0 or 1 end
  if x < now then x, y = now, 0 end
  local n = max(-MAX_BUCKET, burst - floor(((x - now) * c.limit + y) / c.a)) -- may be too many: the missing permits are rounded down
  while n > -MAX_BUCKET and up(gain(c, x, y, n - burst)) > now do n = n - 1 end
  return c.cut > now and min(n, 0) or n
end

function bucket.full(c, now) return lacks(c, 0, now, now) end

function bucket.more(c, room, now)
  local debt = c.prepaid and lacks(c, -c.burst, now, now) or now -- when a debt is paid
  return debt > now and debt or lacks(c, min(0, room + 1 - c.burst), now, now)
end

-- What follows is made when a call first uses it.

local states = use('states')
local byte = string.byte
local NAMES = { 's', 'x', 'y', 'z', time = 'x', layout = NEWEST }

bucket.newest, bucket.gain, bucket.add_permits, bucket.write = NEWEST, gain, add_permits, write

-- Returns how full the bucket must be for n permits to pass, in permits, counted back from full, so it is 0 or less.
local function needed(c, n) return c.prepaid and -c.burst or n - c.burst end

-- Returns the quotient and the rest of m*n/divisor, but at most LONGEST. All three may have 38 bits, or m may have 52 bits, and n and the
-- divisor 24. The product may have more bits than the 53 of a double.
local function divide(m, n, divisor)
  local quotient, rest = 0, 0
  for _, unit in ipairs { 67108864, 8192, 1 } do
    local digit = floor(m / unit)
    local dividend = rest * 8192 + digit * n
    m, rest = m - digit * unit, dividend % divisor
    quotient = quotient * 8192 + (dividend - rest) / divisor
  end
  if quotient >= LONGEST then return LONGEST, 0 end
  return quotient, rest
end

-- Returns m*n/divisor, rounded up.
local function mul_div(m, n, divisor) return up(divide(m, n, divisor)) end

bucket.mul_div = mul_div

-- Converts a state to the claim's limit, for the first call at that limit. The bucket counts as having gained at the lower of the two rates
-- since s. While calls wait for their places, it gains at the old rate. The conversion keeps the number of missing permits, but a debt of a
-- prepaid bucket or a warm-up keeps its time. Returns whether to write the state.
local function adapt(c, now, b)
  local from, x, y, before = b.s, up(b.x, b.y), 0, up(b.x, b.y)
  if c.limit > b.z or x + MEMORY <= now then from = max(from, now) end
  if c.prepaid then
    local stored, rest = divide(c.a, c.burst, b.z)
    from = max(from, b.cut, b.x - stored + (b.y > rest and 1 or 0)) -- the end of its debt, also for an earlier, smaller burst
  end
  if x > from then
    x, y = divide(b.x - from, b.z, c.limit)
    y = y + b.y
    local left = y % c.limit
    x, y = from + x + (y - left) / c.limit, left
  end
  b.x, b.y = x, y
  if c.kind == WARMUP then return end -- its missing permits are a debt, so there is nothing to write
  local cuts = from > now or c.limit < b.z and b.old_full > now
  if cuts then b.cut = max(from, now) end
  if cuts or c.limit > b.z then b.old_full = max(b.old_full, before) end
  b.s = max(b.s, now)
  return true
end

-- Returns s, x, y, cut and old_full of a state that has another limit, other numbers or damage, and whether to write it. A damaged state
-- counts as none. An ask converts the state. Giving permits back is no ask: it is done at the state's own limit.
function bucket.convert(c, state, now)
  local list = states.read_groups(c, state, NAMES, -1, now + FARTHEST) -- -1 keeps a time that has come
  local b, changes, changed = list[1], list[2], false
  if not b then return -1, -1, 0, 0, 0 end
  if (#state == 32 or byte(state) < NEWEST) and c.kind ~= WARMUP then b.s = now end
  b.cut, b.old_full = changes and changes.s or 0, changes and changes.x or 0
  if c.cost < 0 and b.z ~= c.limit and b.z > 0 then
    c.faster = max(b.z, c.limit)
    c.limit = b.z
    bucket.prepare(c)
  elseif b.z ~= c.limit and b.z > 0 then
    changed = adapt(c, now, b)
  end
  return b.s, b.x, b.y, b.cut, b.old_full, changed
end

function bucket.earliest(c, n, now, from) return lacks(c, needed(c, n), now, from) end

-- A bucket keeps a place only at the time at which the bucket itself would admit the claim. If another rule of the call needs a later
-- place, the bucket must not keep it: that would delay everybody who shares the bucket.
function bucket.reserves(c, now, at) return bucket.earliest(c, c.cost, now, now) == at end

-- Charges n permits, even beyond the limit. If the debt would last too long, it cuts the debt, and notes by how much.
function bucket.charge(c, n, now)
  local before = c.x
  add_permits(c, n, now)
  c.s = max(c.s, now)
  local most = max(before, gain(c, now, 0, c.burst) + MAX_DEBT)
  local beyond = c.x - most
  if beyond >= 0 then
    c.x, c.y = most, 0
    states.add_note(pack('<BBdd', c.number, PRICE, beyond, 0))
  end
  c.is.write(c)
end

-- The places of a bucket follow each other on the scale of the time at which the bucket is full again: a place of n permits is as long as
-- the bucket takes to gain them. A call can use n permits of an interval as if the bucket were full at their begin, with nothing later.

-- Returns the smallest number of permits whose gain moves the time x + y/limit to a given time or beyond.
local function steps(c, x, y, at)
  local n = floor(((at - 1 - x) * c.limit - y) / c.a)
  for _ = 1, 2 do -- the estimate is at most two too small
    if up(gain(c, x, y, n)) < at then n = n + 1 end
  end
  return n
end

-- Tells the permits that the bucket lacks beyond its burst: calls wait for them. On a prepaid bucket nobody waits for permits of his own.
function bucket.charges(c, now, tell)
  if c.prepaid then return end
  local x, y = gain(c, c.x, c.y, -c.burst)
  for n = max(steps(c, x, y, now + 1), 1 - c.wait - MOST_TOLD), -c.wait do tell(up(gain(c, x, y, n)), 1) end
end

-- Counts back from the time at which the bucket is full to its latest place. After a change of the limit this count may end too early. Then
-- the claim's place must not be before s either.
function bucket.is_last_charge(c, n, now, at)
  return up(gain(c, c.x - (c.price or 0), c.y, needed(c, n) - n)) <= at and (c.old_full == 0 or c.s <= at)
end

-- Counts back from the latest place to the exact time of the claim's place. If the limit has changed since, this does not find that time;
-- then the claim's time serves, which is rounded up. A debt keeps its time when the limit changes, so its place does not become free.
function bucket.interval(c, n, now, at)
  if c.faster and c.prepaid then return { at = at, permits = 0 } end
  local x, y = gain(c, c.x, c.y, needed(c, n) - n)
  local k = steps(c, x, y, at)
  local full, parts = gain(c, at, 0, n - needed(c, n))
  if up(gain(c, x, y, k)) == at then full, parts = gain(c, c.x, c.y, k) end
  return { at = full, parts = parts, permits = n, limit = c.limit }
end

function bucket.touch(c, i, j)
  local x, y = gain(c, j.at, j.parts, -j.permits)
  return i.limit == j.limit and i.limit == c.limit and (x < i.at or x == i.at and y <= i.parts)
end

-- Is also true if the bucket has become unused: the time of the interval is over.
function bucket.is_last_interval(c, i) return c.x < 0 or i.limit == c.limit and (i.at > c.x or i.at == c.x and i.parts >= c.y) end

function bucket.reach(c, n, from) return (gain(c, from - 1, 0, n - needed(c, n))) end

-- Returns no place before cut: the bucket gained what its permits need at another limit.
function bucket.place_in(c, i, n, now, from)
  if i.limit ~= c.limit then return end
  local x, y = gain(c, i.at, i.parts, needed(c, n) - i.permits)
  local skip = max(0, steps(c, x, y, max(from, c.cut)))
  if skip + n <= i.permits then return i.permits - skip, up(gain(c, x, y, skip)) end
end

function bucket.without(c, i, n)
  local x, y = gain(c, i.at, i.parts, -n)
  return { at = x, parts = y, permits = i.permits - n, limit = i.limit }
end

-- Gives permits back, and reports whether it gave any. Without the charge, the bucket may have been full from the charge until s, and a full
-- bucket gains nothing. So what the bucket gains in that time does not come back. If the limit has changed, the faster rate counts. The permits
-- of a debt do not come back if the limit has changed, because the debt kept its time. Nor do they come back while calls wait, because a call
-- before their places could go into any debt. After the last place nothing was charged, so the charge of that place comes back as a whole.
function bucket.subtract(c, n, now, at)
  local is_last = at > now and c.free_key
  if c.x < now or c.prepaid and (c.faster or c.s > now and not is_last) or at < c.cut and not is_last then return false end
  local lost = is_last and 0 or mul_div(max(0, c.s - at), c.faster or c.limit, c.limit)
  local price = c.price or 0
  if lost > (gain(c, price, 0, n)) then return false end
  c.x, c.y = gain(c, c.x - price + lost, c.y, -n)
  if c.x < c.cut then c.x, c.y = c.cut, 0 end
  if is_last and not use('decide').includes(c.has, LEASE) then -- see bucket.go
    c.s = min(c.s, max(now, c.cut, up(gain(c, c.x, c.y, needed(c, 1) - 1))))
  end
  return true
end

function bucket.give_back(c, n, now, at)
  if not bucket.subtract(c, n, now, at) then return end
  if max(up(c.x, c.y), c.old_full) > now then return write(c) end
  c.x, c.y, c.s = -1, 0, -1
  call('DEL', c.key)
end

-- Leaves the places of calls that wait. The bucket is empty at the last place, and stays so: only what was charged beyond that comes back. If a
-- charge before the places came back, the bucket is not empty then, and nothing comes back. The end of a lease is no place: the bucket is
-- seldom empty then. A warm-up does not know its places, and gives them back: its s is no time.
function bucket.give(c, n, now)
  local x, y = gain(c, c.s, 0, c.burst)
  if c.s <= now or c.x < x - 1 and use('decide').includes(c.has, LEASE) then return c.is.give_back(c, n, now, now) end
  if c.x < x or c.x == x and c.y <= y or not bucket.subtract(c, n, now, c.s) then return end
  if c.x < x or c.x == x and c.y < y then c.x, c.y = x, y end
  write(c)
end

function bucket.pop(c, n, now)
  c.price, c.faster = 0, nil -- a free place has no price, and has the bucket's limit
  if bucket.subtract(c, n, now, max(now + 1, c.s)) then c.is.write(c) end
end
