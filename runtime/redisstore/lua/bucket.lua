-- Buckets: the generic cell rate algorithm. The state is a string: LAYOUT, s, x, y, z. The bucket is full again at x + y/z, its theoretical
-- arrival time; z is the limit at the last charge. s is when the key expires, or a little earlier; of a warm-up it is the idle time
-- that is still stored at x. a is the period, and b the burst. text is for how long permits are taken ahead, if they are. From kind
-- PREPAID on the next call pays; to give back to that kind, text is until when its debt may be that of calls that ran.
local bucket = {}

local LONGEST = 36600 * DAY -- a bucket may take a hundred years to be full
local MAX_DEBT = DAY -- how far a charge beyond the limit carries an empty bucket ahead

-- Adds to a time, whole and in parts of limit, the time in which a bucket gains n permits. The products are exact, as limit and n
-- are at most 10^7.
local function gain(x, y, n, limit, period)
  local rest = period % limit
  local parts = y + n * rest
  local left = parts % limit
  return x + n * ((period - rest) / limit) + (parts - left) / limit, left
end

bucket.gain = gain

-- Returns a time in which a bucket gains at a new limit what it gains at an old one in d, rounded up.
local function rescale(d, old, limit)
  local rest = d % limit
  local whole = (d - rest) / limit
  if whole >= (LONGEST - LONGEST % old) / old then return LONGEST end
  return whole * old + ceil(rest * old / limit)
end

-- After a change of the limit as many permits are missing as before. Debts keep their time: what a prepaid bucket lacks beyond its
-- burst, and all that a warm-up lacks.
local function adapt(c, now, x, y, z)
  x = x + min(y, 1)
  if x <= now or z == 0 then return x end
  local missing, debt = x - now, 0
  if c.kind >= PREPAID then
    local stored, part = gain(0, 0, c.kind == PREPAID and c.b or 0, z, c.a)
    stored = min(missing, stored + min(part, 1))
    missing, debt = stored, missing - stored
  end
  return now + rescale(missing, z, c.limit) + debt
end

-- Returns how many permits may be missing from a full bucket for n permits to pass, negated.
local function needed(c, n)
  if c.kind < PREPAID then return n - c.b end
  return c.kind == PREPAID and -c.b or 0
end

-- Returns the first time, from a time on, at which the bucket lacks no more than so many permits, negated.
local function lacks(c, permits, now, from)
  local x, y = c.x, c.y
  if x < now then x, y = now, 0 end
  x, y = gain(x, y, permits, c.limit, c.a)
  if y > 0 then x = x + 1 end
  return x > from and x or from
end

function bucket.earliest(c, now, from) return lacks(c, needed(c, c.cost), now, from) end

local FARTHEST = LONGEST + HORIZON -- a bucket is full again by then

-- Loads a state that is not as the last charge at the claim's limit left it.
local function load(c, state, now)
  local old, s, x, y, z
  state, old = current(c, state, 32)
  if not state then return end
  s, x, y, z = parse('<dddd', state, 2)
  if not (valid(s, x, y) and valid(z, 0, 0) and x <= now + FARTHEST) then return damage(c) end
  if z ~= c.limit then x, y = adapt(c, now, x, y, z), 0 end
  if old and c.kind ~= WARMUP then s = 0 end -- so that the whole state is written
  c.s, c.x, c.y = s, x, y
end

-- Loads x and y as they are at the claim's limit. Without a state the bucket is full since long ago.
function bucket.check(c, now)
  local state, layout, s, x, y, z = call('GET', c.key), nil, nil, -1, 0, nil
  if state and #state == 33 then layout, s, x, y, z = parse('<Bdddd', state) end
  if layout == LAYOUT and z == c.limit and x <= now + FARTHEST and y >= 0 and x % 1 + y % 1 == 0 then
    c.s, c.x, c.y = s, x, y
  else
    c.s, c.x, c.y = nil, -1, 0
    if state then load(c, state, now) end
  end
  return lacks(c, needed(c, c.cost), now, now)
end

function bucket.room(c, now)
  local burst = -needed(c, 0)
  if burst == 0 then return lacks(c, 0, now, now) > now and 0 or 1 end
  local low, high = 0, burst
  while low < high do
    local middle = ceil((low + high) / 2)
    if lacks(c, middle - burst, now, now) <= now then low = middle else high = middle - 1 end
  end
  return low
end

function bucket.full(c, now) return lacks(c, 0, now, now) end

-- A bucket keeps a place only at the time that it dictates itself. A later place, because of another rule of the call, would carry
-- it ahead for everybody.
function bucket.reserves(c, now, at) return bucket.earliest(c, now, now) == at end

local function add(c, n, now)
  local x, y = c.x, c.y
  if x < now then x, y = now, 0 end
  c.x, c.y = gain(x, y, n, c.limit, c.a)
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

-- Returns by how much the debt would last too long.
function bucket.add_beyond(c, n, now)
  local before = c.x
  add(c, n, now)
  local empty = gain(now, 0, -needed(c, 0), c.limit, c.a)
  local most = max(before, empty + MAX_DEBT)
  local beyond = c.x - most
  if beyond >= 0 then c.x, c.y = most, 0 end
  return beyond
end

function bucket.charge(c, n, now)
  local beyond = bucket.add_beyond(c, n, now)
  write(c)
  return beyond
end

function bucket.last(c, n, now, at, extra)
  local x, y = gain(c.x - (extra or 0), c.y, needed(c, n) - n, c.limit, c.a)
  return x + min(y, 1) <= at
end

-- Reports whether there may be calls that wait for other places than the charge's. If the debt of a prepaid bucket lasts longer than that
-- of calls that ran, others wait.
local function others_wait(c, now, at, dated, own_debt)
  local is_place = at > now and not dated
  if is_place or lacks(c, needed(c, 0), now, now) <= now then return false end
  return c.kind < PREPAID or c.x + min(c.y, 1) > own_debt
end

-- Gives back what has not refilled since the charge, and reports whether there is any: the bucket would be as full without the rest
-- of the charge. A later lease may be recorded as late as it can last, and the bucket does not know of it. While others wait, the
-- charge is lost: their places stay, so the bucket would have run over.
function bucket.subtract(c, n, now, at, extra, dated, own_debt)
  local lease = c.kind < PREPAID and tonumber(c.text) or 0
  local refilled = max(0, now + lease - at)
  local x, y = gain(c.x, c.y, -n, c.limit, c.a)
  if c.kind < PREPAID and x + min(y, 1) <= at then refilled = 0 end -- this was the last charge
  if refilled > (gain(extra, 0, n, c.limit, c.a)) or c.x < now or others_wait(c, now, at, dated, own_debt) then return end
  c.x, c.y = gain(c.x - extra + refilled, c.y, -n, c.limit, c.a)
  return true
end

function bucket.give_back(c, n, now, at, _, dated)
  if bucket.subtract(c, n, now, at, 0, dated, tonumber(c.text)) then write(c) end
end

function bucket.lease(c, n, now, stop)
  if c.x < stop then c.x, c.y = stop, 0 end
  bucket.commit(c, n, now)
  return stop
end
