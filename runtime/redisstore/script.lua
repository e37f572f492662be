-- Decides one call against all of its rules: checks every rule first, then commits to all of them or to none.
--
-- KEYS[i] holds the state of rule i for its subject; ARGV[i] is the rule: six little-endian doubles and a text, called kind,
-- limit, cost, a, b, wait and text below. wait is how long the rule may delay the call, SHADOW for a rule that only reports,
-- or TRIGGER for one that only counts. An operation follows if the call is not a plain one, whose rules neither wait nor are of a
-- kind beyond PREPAID: 'wait' and by how much the call must be delayed at least; 'peek', to commit nothing; 'refuse', if the call
-- is refused elsewhere, to commit nothing but blocks; or 'return' and a time, to give back what was admitted then. Every time is in whole microseconds of this server's clock; every state is of
-- integers, kept as little-endian doubles.
--
--   kind      a       b       text    state at KEYS[i]
--   LOG       period          index   list: the time of every permit, oldest first; index is that of the newest permit
--                                     which must have left the window before cost more fit in
--   FIXED     period                  string: start and stop of the open window, permits used in it; then the same of
--                                     windows to come, if calls wait for them. Only the last one takes permits.
--   CALENDAR  start   stop            the same; a and b are the calendar window which the caller takes for the present one
--   BUCKET    period  needed          string: x, y, z. The bucket is full again at x + y/z, GCRA's theoretical arrival time;
--                                     z is the limit at the last charge. needed is how many permits short of full it may
--                                     be, negated, for the call to pass: cost less burst.
--   PREPAID   period  needed          the same; needed is the burst, negated, and the next call pays
--   WARM      period  warmup          string: x, y, z as above with a burst of nothing, and s: the time of idling, up to
--                                     warmup, that is still stored at x
--   COUNTER   width   slices          string: the newest slice's number, the permits used in the window, those of them in
--                                     the newest slice; then a ring of the permits of all slices
--   MEMBERS   period          member  sorted set: the members by the time of their admission
--   DAILY     start   stop    member  the same in a calendar window
--   BLOCK     period                  string: until when the rule behind it refuses, since it refused
--
-- The reply is one of
--   time            admitted then
--   {time, now, report}   the same, if there is a report, or if the call waits until then
--   -time           nothing was done: ask again, with the calendar windows that hold this time
--   report          refused
-- A report has four doubles for each rule that refuses, or that shadow or trigger is about, the last rule first: this
-- server's time; the rule's number; the earliest time at which it admits the cost; and how many permits it would admit now,
-- or for a trigger how many are used.
--
-- Redis runs one script at a time, so every microsecond here is one that no other client gets. Hence the few commands, the
-- recursion (a rule's state stays in local variables from check to commit), and what is handed down rather than captured, since
-- Lua allocates what a function captures.

local call = redis.call
local special = ARGV[#KEYS + 1] and { op = ARGV[#KEYS + 1], calendars = {} } -- what a plain call does without
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- Adds to a time, whole and in parts of limit, that in which a bucket gains n permits. The products stay exact, as limit and
-- n are at most 10^7.
local function gain(x, y, n, limit, period)
  local rest = period % limit
  local parts = y + n * rest
  local left = parts % limit
  return x + n * ((period - rest) / limit) + (parts - left) / limit, left
end

-- The check of the less frequent kinds: the earliest time; a function that commits and returns what is used then; and how many
-- permits the rule would admit, if that is known. Made only where an operation says that it may be needed.
if special then
  function special.check(key, kind, limit, cost, a, b, text)
    local WARM, COUNTER, DAILY, BLOCK = 6, 7, 9, 10

    local function expire(time_)
      call('PEXPIREAT', key, string.format('%d', math.ceil(time_ / 1000)))
    end

    -- Returns m*n/divisor, rounded up. None has more than 37 bits, but the product may have more than the 53 of a double.
    local function ceiling(m, n, divisor)
      local quotient, rest = 0, 0
      for _, unit in ipairs { 67108864, 8192, 1 } do
        local digit = math.floor(m / unit)
        local dividend = rest * 8192 + digit * n
        m, rest = m - digit * unit, dividend % divisor
        quotient = quotient * 8192 + (dividend - rest) / divisor
      end
      return quotient + math.min(rest, 1)
    end

    if kind == BLOCK then
      local state = call('GET', key)
      return math.max(now, state and struct.unpack('<d', state) or 0), function() end
    end

    if kind == WARM then
      local state = call('GET', key)
      local x, y, z, stored = now, 0, limit, b
      if state then
        x, y, z, stored = struct.unpack('<dddd', state)
        if z ~= limit then x, y, z = x + math.min(y, 1), 0, limit end
      end
      return math.max(now, x + math.min(y, 1)), function(at)
        if x < at then x, y, stored = at, 0, math.min(b, stored + at - x) end
        -- The permits that idling stored above half of the warm-up cost up to three times as much.
        local above = math.max(0, stored - math.floor(b / 2))
        local taken = gain(0, 0, cost, limit, a)
        local cold = math.min(above, taken)
        x, y = gain(x, y, cost, limit, a)
        local fresh = math.max(0, taken - stored)
        stored = stored - (taken - fresh)
        x = x + ceiling(2 * cold, 2 * above - cold, b)
        call('SET', key, struct.pack('<dddd', x, y, limit, stored), 'PXAT', string.format('%d', math.ceil((x + 1 + b) / 1000)))
      end
    end

    if kind == COUNTER then
      local size = b + 1 -- slices in the ring: those of a window, and one that the window has left in part
      local function slot(n) return 24 + 8 * (n % size) end
      local function ring(from, to) -- the permits of these slices, in order
        local first, last = slot(from), slot(to) + 7
        if first < last then return call('GETRANGE', key, first, last) end
        return call('GETRANGE', key, first, 23 + 8 * size) .. call('GETRANGE', key, 24, last)
      end
      local function read(at) -- at that time: the slice, the newest slice known, permits in the window and in the newest slice
        local slice = math.floor(at / a)
        local head = call('GETRANGE', key, 0, 23)
        if head == '' then return slice, nil, 0, 0 end
        local newest, used, count = struct.unpack('<ddd', head)
        if slice >= newest + size then return slice, nil, 0, 0 end
        if slice > newest then
          local left = ring(newest + 1, slice)
          for i = 1, #left, 8 do used = used - struct.unpack('<d', left, i) end
        end
        return math.max(slice, newest), newest, used, count
      end

      local slice, newest, used, count = read(now)
      local earliest = math.max(now, slice * a)
      if newest and used + cost > limit then
        local excess = used + cost - limit
        local permits = ring(slice - b, slice - 1)
        local n = slice - b
        while n < newest do
          excess = excess - struct.unpack('<d', permits, 8 * (n - slice + b) + 1)
          if excess <= 0 then break end
          n = n + 1
        end
        earliest = (n + size) * a
      end
      return earliest, function(at)
        slice, newest, used, count = read(at)
        if not newest then
          used, count = cost, cost
          call('SET', key, struct.pack('<ddd', slice, cost, cost) .. string.rep('\0', 8 * size))
        else
          if slice > newest then
            call('SETRANGE', key, slot(newest), struct.pack('<d', count))
            for n = newest + 1, slice do call('SETRANGE', key, slot(n), string.rep('\0', 8)) end
            count = 0
          end
          used, count = used + cost, count + cost
          call('SETRANGE', key, 0, struct.pack('<ddd', slice, used, count))
        end
        if slice ~= newest then expire((slice + size) * a) end
        return used
      end, slice * a <= now and math.max(0, limit - used) or 0
    end

    -- MEMBERS and DAILY
    local since = now - a -- members admitted later count
    if kind == DAILY then since = a - 1 end
    local known = call('ZSCORE', key, text)
    if known and tonumber(known) > since then return now, function() end end
    local used = call('ZCOUNT', key, string.format('(%d', since), '+inf')
    local earliest = now
    if used >= limit then
      earliest = kind == DAILY and b or call('ZRANGE', key, -limit, -limit, 'WITHSCORES')[2] + a
    end
    return earliest, function(at)
      call('ZREMRANGEBYSCORE', key, '-inf', string.format('%d', since))
      call('ZADD', key, string.format('%d', at), text)
      expire(kind == DAILY and b or at + a)
      return used + 1
    end
  end
end

-- Rule i and those behind it: checks on the way down, with at the earliest time that suits the rules before, and commits on
-- the way up, with at the time that suits all. Returns that time if the call is admitted, else false; then a report; then the
-- number of the first of these rules that refuses, or 0 with a time for a report if a calendar window is not known.
local function decide(i, at, refused, call, now, special, gain)
  local key = KEYS[i]
  if not key then
    if special and not refused then
      for _, c in ipairs(special.calendars) do
        if at >= c[1] and (at < c[2] or at >= c[3]) then return false, -at, 0 end
      end
    end
    return not refused and at, ''
  end
  local LOG, CALENDAR, BUCKET, PREPAID, DAILY, BLOCK = 1, 3, 4, 5, 9, 10
  local SHADOW, TRIGGER = -1, -2
  local kind, limit, cost, a, b, wait, text = struct.unpack('<dddddds', ARGV[i])

  -- Check.
  local earliest = now
  local x, y, z, state, open, commit, room -- x, y and z are the state as in the table above
  if kind == LOG then
    local permit = call('LINDEX', key, text)
    if permit then earliest = struct.unpack('<d', permit) + a end
  elseif kind > PREPAID then
    if kind == DAILY and (now < a or now >= b) then return false, -now, 0 end
    earliest, commit, room = special.check(key, kind, limit, cost, a, b, text)
  else
    state = call('GET', key)
    if state then x, y, z = struct.unpack('<ddd', state, #state - 23) end
    if kind >= BUCKET then
      if state and z ~= limit then x, y = x + math.min(y, 1), 0 end
      if state and x >= now then
        local t, parts = gain(x, y, b, limit, a)
        earliest = t + math.min(parts, 1)
      else
        x, y = now, 0
      end
    else
      open = state and now < y
      if not open then
        z = 0
      elseif z + cost > limit then
        earliest = y
      else
        earliest = x
      end
      if kind == CALENDAR then
        if special then -- the call may be admitted in another window than the present one
          table.insert(special.calendars, { open and y or 0, a, b })
        elseif not open and (now < a or now >= b) then
          return false, -now, 0
        end
      end
    end
  end
  local refuses = false
  if earliest > now and wait ~= TRIGGER then
    if earliest > now + wait then
      refuses = true
      refused = refused or wait ~= SHADOW
    elseif earliest > at then
      at = earliest
    end
  end

  local report, by
  if special or KEYS[i + 1] then
    at, report, by = decide(i + 1, at, refused, call, now, special, gain)
  else
    at, report = not refused and at, '' -- what decide would say
  end
  if by == 0 then return false, report, 0 end

  if refuses then
    local high = (kind == LOG or kind == BUCKET) and cost - 1 or 0
    room = room or open and x <= now and math.max(0, limit - z) or 0
    while room < high do -- by bisection, as a smaller cost looks at an older permit
      local middle = math.ceil((room + high) / 2)
      local t, parts = now, 0
      if kind == BUCKET then
        t, parts = gain(x, y, b - cost + middle, limit, a)
      else
        local permit = call('LINDEX', key, middle - limit - 1)
        if permit then t = struct.unpack('<d', permit) + a end
      end
      if t + math.min(parts, 1) <= now then room = middle else high = middle - 1 end
    end
    return at, report .. struct.pack('<dddd', now, i, earliest, room), wait ~= SHADOW and i or by
  end
  if not at then
    if kind == BLOCK and by == i + 1 and special.op ~= 'peek' then
      call('SET', key, struct.pack('<d', now + a), 'PX', math.ceil(a / 1000))
    end
    return false, report, by
  end
  if special and special.op == 'peek' then return at, report end

  -- Commit.
  local used -- by now; a trigger asks
  if kind == LOG then
    local ttl = call('PTTL', key)
    local lifetime = a * 9 / 8000 -- an eighth more than needed, so that under load most calls find it long enough
    local later
    if ttl > lifetime + 1 then -- there may be permits that calls wait for
      later = {}
      local newest = call('LINDEX', key, '-1')
      while newest and struct.unpack('<d', newest) > at do
        table.insert(later, 1, call('RPOP', key))
        newest = call('LINDEX', key, '-1')
      end
    end
    if wait == TRIGGER then
      local low, high = 0, math.min(limit, call('LLEN', key))
      while low < high do
        local middle = math.ceil((low + high) / 2)
        if struct.unpack('<d', call('LINDEX', key, -middle)) > at - a then low = middle else high = middle - 1 end
      end
      used = low + (later and #later or 0) + cost
    end
    local permit = struct.pack('<d', at)
    local length
    local count = math.min(cost, limit) -- a trigger's cost has no bound
    if count == 1 then
      length = call('RPUSH', key, permit)
    else
      local permits = {}
      for n = 1, math.min(count, 1000) do permits[n] = permit end -- Lua's stack holds no more than some thousands
      for done = 0, count - 1, 1000 do
        length = call('RPUSH', key, unpack(permits, 1, math.min(count - done, 1000)))
      end
    end
    if later then
      for _, waiting in ipairs(later) do length = call('RPUSH', key, waiting) end
      if length == #later + count then call('PEXPIRE', key, ttl) end -- the list was gone for a moment, and its expiry with it
    end
    local over = length - limit
    if at > now then -- those that have not left the window still count if this place is given back
      while over > 0 and struct.unpack('<d', call('LINDEX', key, '0')) <= now - a do
        call('LPOP', key)
        over = over - 1
      end
    elseif over == 2 then -- every other call
      call('LPOP', key, '2')
    elseif over > 2 then
      call('LPOP', key, over)
    end
    if at > now then
      local until_ = math.ceil((at - now) / 1000 + lifetime + 2)
      if ttl < until_ then call('PEXPIRE', key, until_) end
    elseif ttl < a / 1000 then
      call('PEXPIRE', key, math.ceil(lifetime))
    end
  elseif commit then
    used = commit(at)
  elseif kind >= BUCKET then
    if x < at then x, y = at, 0 end
    x, y = gain(x, y, cost, limit, a)
    call('SET', key, struct.pack('<ddd', x, y, limit), 'PXAT', string.format('%d', math.ceil((x + 1) / 1000)))
  elseif open and at < y then
    used = z + cost
    call('SETRANGE', key, #state == 24 and '16' or #state - 8, struct.pack('<d', used))
  else
    used = cost
    local start, stop = at, at + a
    if kind == CALENDAR then start, stop = a, b end
    state = open and state or ''
    while #state > 0 and struct.unpack('<d', state, 9) <= now do state = string.sub(state, 25) end
    call('SET', key, state .. struct.pack('<ddd', start, stop, cost), 'PXAT', string.format('%d', math.ceil(stop / 1000)))
  end
  if wait == TRIGGER and used and used >= limit and used - cost < limit then
    report = report .. struct.pack('<dddd', now, i, now, used)
  end
  return at, report, by
end

if special and special.op == 'return' then
  -- Gives back what rule i was charged at a time, as far as it still counts.
  local function giveBack(i, at)
    local LOG, CALENDAR, PREPAID, WARM, COUNTER, DAILY = 1, 3, 5, 6, 7, 9
    local key = KEYS[i]
    local kind, limit, cost, a, b, _, text = struct.unpack('<dddddds', ARGV[i])
    if kind == LOG then
      call('LREM', key, -cost, struct.pack('<d', at))
    elseif kind <= CALENDAR then
      local state = call('GET', key) or ''
      for from = 1, #state, 24 do
        local start, stop, used = struct.unpack('<ddd', state, from)
        if start <= at and at < stop then
          used = math.max(0, used - cost)
          state = string.sub(state, 1, from + 15) .. struct.pack('<d', used) .. string.sub(state, from + 24)
        end
      end
      while state ~= '' and struct.unpack('<d', state, #state - 7) == 0 and struct.unpack('<d', state, #state - 23) > now do
        state = string.sub(state, 1, -25) -- a window to come that nobody waits for any more
      end
      if state ~= '' then call('SET', key, state, 'KEEPTTL') else call('DEL', key) end
    elseif kind <= WARM then
      local state = call('GET', key)
      if state then
        local x, y, z = struct.unpack('<ddd', state)
        if z ~= limit then x, y = x + math.min(y, 1), 0 end
        if x >= now then
          x, y = gain(x, y, -cost, limit, a)
          call('SETRANGE', key, 0, struct.pack('<ddd', x, y, limit))
        end
      end
    elseif kind == COUNTER then
      local head = call('GETRANGE', key, 0, 23)
      local slice = math.floor(at / a)
      if head ~= '' then
        local newest, used, count = struct.unpack('<ddd', head)
        local slot = 24 + 8 * (slice % (b + 1))
        if slice == newest then
          call('SETRANGE', key, 0, struct.pack('<ddd', newest, used - cost, count - cost))
        elseif slice < newest and slice >= newest - b then
          call('SETRANGE', key, slot, struct.pack('<d', struct.unpack('<d', call('GETRANGE', key, slot, slot + 7)) - cost))
          call('SETRANGE', key, 8, struct.pack('<d', used - cost))
        end
      end
    elseif kind <= DAILY and tonumber(call('ZSCORE', key, text) or 0) == at then
      call('ZREM', key, text)
    end
  end

  local at = tonumber(ARGV[#KEYS + 2])
  for i = 1, #KEYS do giveBack(i, at) end
  return at
end

local after = special and special.op == 'wait' and ARGV[#KEYS + 2] or 0
local at, report = decide(1, now + after, special and special.op == 'refuse', call, now, special, gain)
if at and (at > now or report ~= '') then return { at, now, report } end
return at or report ~= '' and report or now
