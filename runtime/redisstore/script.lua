-- Decides one call against all of its rules: checks every rule first, then commits to all of them or to none.
--
-- KEYS[i] holds the state of rule i for its subject; ARGV[i] is the rule: six little-endian doubles and a text, called kind,
-- limit, cost, a, b, wait and text below. wait is how long the rule may delay the call, SHADOW for a rule that only reports,
-- or TRIGGER for one that only counts. An operation follows if the call is not a plain one, whose rules neither wait nor are of
-- a kind beyond PREPAID: 'wait' and by how much the call must be delayed at least; 'from' and the time of that; 'peek', to
-- commit nothing; 'refuse', if the call is refused elsewhere, to commit nothing but blocks; 'return' and a time, to give back
-- what was admitted then; or 'undo' and a time, the same for a call that was refused elsewhere since. Every time is in whole
-- microseconds of this server's clock; every state is of integers, kept as little-endian doubles.
--
--   kind      a       b       text    state at KEYS[i]
--   LOG       period          index   list: the time of every permit, oldest first; index is that of the newest permit
--                                     which must have left the window before cost more fit in
--   FIXED     period                  string: start and stop of the open window, permits used in it; then the same of
--                                     windows to come, if calls wait for them. A call that would open a window which reaches
--                                     into the next one is taken by that, which begins earlier then.
--   CALENDAR  start   stop    stops   the same; a and b are the calendar window which the caller takes for the present one;
--                                     stops are the ends of the next ones, as far as the call may have to wait
--   BUCKET    period  needed          string: s, x, y, z. The bucket is full again at x + y/z, GCRA's theoretical arrival
--                                     time; z is the limit at the last charge. s is when the key expires, or a little earlier.
--                                     needed is how many permits short of full it may be, negated, for the call to pass:
--                                     cost less burst.
--   PREPAID   period  needed          the same; needed is the burst, negated, and the next call pays
--   WARM      period  warmup  price   the same with a burst of nothing, but s is the time of idling, up to warmup, that is
--                                     still stored at x. The price is that of a charge that is returned.
--   COUNTER   width   slices          string: the newest slice's number, the permits used in the window, those of them in
--                                     the newest slice, and how many later slices calls wait for; then a ring of the permits
--                                     of all slices; then number and permits of each later one
--   MEMBERS   period          member  sorted set: the members by the time of their admission
--   CALENDAR_MEMBERS
--             start   stop    member  the same in a calendar window
--   BLOCK     period                  string: until when the rule behind it refuses, since it refused
--
-- While calls wait for a bucket its string is: s, x, y, z as they were without them; an entry for each charge, by their times: its
-- time, cost and limit, its price, which is extra time and time out of s, and s, x and y after it; then s, x, y, z after all.
--
-- The reply is one of
--   time            admitted then
--   {time, now, report}   the same, if there is a report, or if the call waits until then; after 'refuse' it means that no rule
--                         of this part refuses
--   -time           nothing was done: ask again, with the calendar windows that hold this time, and with an operation
--   report          refused
-- A report has four doubles for each rule that refuses, or that shadow or trigger is about, the last rule first: this
-- server's time; the rule's number; the earliest time at which it admits the cost; and how many permits it would admit now,
-- or for a trigger how many are used. Where the number is negated, the last two are the price that a WARM rule took.
--
-- Below stand: what only special calls need, which is kinds beyond PREPAID and what waits; decide, which is all that a plain call
-- runs; giving back; and the call itself.
--
-- Redis runs one script at a time, so every microsecond here is one that no other client gets. Hence the few commands, the
-- recursion (a rule's state stays in local variables from check to commit), and what is handed down rather than captured, decide
-- itself too, since Lua allocates what a function captures.

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

if special then
  function special.expire(key, at)
    call('PEXPIREAT', key, string.format('%d', math.ceil(at / 1000)))
  end

  -- Buckets while calls wait. An entry is a packed charge, and s, x and y after it; z is the charge's limit then.

  local CHARGE, ENTRY = 40, 64

  local function add(charge, period, warmup, s, x, y, z)
    local at, cost, limit, extra, taken = struct.unpack('<ddddd', charge)
    if z ~= limit then x, y = x + math.min(y, 1), 0 end
    if x < at then s, x, y = math.min(warmup, s + at - x), at, 0 end
    x, y = gain(x, y, cost, limit, period)
    return s - taken, x + extra, y, limit
  end

  local function after(state, from)
    local z, _, _, s, x, y = struct.unpack('<dddddd', state, from + 16)
    return s, x, y, z
  end

  -- Returns s, x, y and z at the end of a state.
  function special.state(state, warmup)
    if not state then return warmup, 0, 0, 0 end
    return struct.unpack('<dddd', state, #state - 31)
  end

  -- Returns where in a state the entries begin whose time has not come, where they end, and s, x, y and z before them. Of many
  -- only the latest stay, as each makes decisions dearer. The others count as charged already, so that
  -- a call that comes before them may wait for them, and to give one back no longer moves later places up.
  local function settle(state, warmup)
    if not state or #state % ENTRY ~= 0 then return 1, 1, special.state(state, warmup) end -- or entries of another size
    local from, last = 33, #state - 31
    while from < last and (from < last - 256 * ENTRY or struct.unpack('<d', state, from) <= now) do from = from + ENTRY end
    local s, x, y, z
    if from == 33 then s, x, y, z = struct.unpack('<dddd', state) else s, x, y, z = after(state, from - ENTRY) end
    return from, last, math.min(s, warmup), x, y, z -- where nothing is stored, s is the expiry
  end

  -- Keeps s, x, y and z; then the entries of a state between from and to, that of a charge if there is one, and the entries from
  -- behind to last, as they are after it.
  local function keep(key, state, from, to, charge, behind, last, period, warmup, s, x, y, z)
    local head = struct.pack('<dddd', s, x, y, z)
    if to > from then s, x, y, z = after(state, to - ENTRY) end
    local made = {}
    local function make(charge)
      s, x, y, z = add(charge, period, warmup, s, x, y, z)
      table.insert(made, charge .. struct.pack('<ddd', s, x, y))
    end
    if charge then make(charge) end
    while behind < last do
      make(string.sub(state, behind, behind + CHARGE - 1))
      behind = behind + ENTRY
      if string.sub(made[#made], CHARGE + 1) == string.sub(state, behind - 24, behind - 1) then -- then so are all others
        s, x, y, z = after(state, last - ENTRY)
        break
      end
    end
    local expiry = x + 1 + warmup
    if to > from or made[1] then
      head = head .. string.sub(state or '', from, to - 1) .. table.concat(made) .. string.sub(state or '', behind, last - 1)
        .. struct.pack('<dddd', s, x, y, z)
    elseif warmup == 0 then
      head = struct.pack('<dddd', expiry, x, y, z)
    end
    if expiry > now then
      call('SET', key, head, 'PXAT', string.format('%d', math.ceil(expiry / 1000)))
    else
      call('DEL', key)
    end
  end

  -- Returns how many permits an entry has reserved, or more than any bucket holds if they are of another size.
  local function reserved(state, from, limit)
    local permits, of = struct.unpack('<dd', state, from + 8)
    return of == limit and permits or 2 ^ 34
  end

  -- Returns the first time, from one on, at which a bucket lacks no more than so many permits, negated.
  local function free(from, needed, limit, period, s, x, y, z)
    if z ~= limit then x, y = x + math.min(y, 1), 0 end
    if x < from then
      if needed <= 0 then return from end
      x, y = from, 0
    end
    x, y = gain(x, y, needed, limit, period)
    return math.max(from, x + math.min(y, 1))
  end

  -- Returns when a bucket admits a cost while others wait for it: behind them, or behind those of them that it would delay if
  -- it came before, as what they have reserved counts as taken.
  function special.queue(state, prepaid, limit, cost, period, b)
    local first, last, s, x, y, z = settle(state, 0)
    if first == last then return free(now, b, limit, period, s, x, y, z) end
    local to, needed = last, prepaid and cost + b or b
    while to > first and needed + reserved(state, to - ENTRY, limit) <= 0 do
      to = to - ENTRY
      needed = needed + reserved(state, to, limit)
    end
    local behind = free(struct.unpack('<d', state, last - ENTRY), b, limit, period, special.state(state, 0))
    if to == last then return behind end
    if to == first then return math.min(behind, free(now, needed, limit, period, s, x, y, z)) end
    return math.min(behind, free(struct.unpack('<d', state, to - ENTRY), needed, limit, period, after(state, to - ENTRY)))
  end

  -- Returns the largest cost below one that is refused which a bucket would admit now, though others wait for it.
  function special.room(state, prepaid, limit, cost, period, b)
    local first, last, s, x, y, z = settle(state, 0)
    if first == last and prepaid then return 0 end
    local taken = prepaid and b or b - cost
    for from = first, last - 1, ENTRY do
      taken = taken + reserved(state, from, limit)
      if taken >= 0 then return 0 end
    end
    local room, high = 0, cost - 1
    while room < high do
      local middle = math.ceil((room + high) / 2)
      if free(now, taken + middle, limit, period, s, x, y, z) <= now then room = middle else high = middle - 1 end
    end
    return room
  end

  function special.charge(key, state, charge, period, warmup)
    local first, last, s, x, y, z = settle(state, warmup)
    local at = struct.unpack('<d', charge)
    if at <= now then
      keep(key, state, first, first, nil, first, last, period, warmup, add(charge, period, warmup, s, x, y, z))
      return
    end
    local to = last
    while to > first and struct.unpack('<d', state, to - ENTRY) > at do to = to - ENTRY end
    keep(key, state, first, to, charge, to, last, period, warmup, s, x, y, z)
  end

  -- Undoes a charge as long as it is remembered, and makes those after it again. Afterwards there is no telling what came of it,
  -- and as many permits are put back.
  function special.giveBack(key, state, charge, period, warmup)
    local first, last, s, x, y, z = settle(state, warmup)
    local at, cost, limit, extra, taken = struct.unpack('<ddddd', charge)
    local to = last - ENTRY
    while to >= first and string.sub(state, to, to + CHARGE - 1) ~= charge do to = to - ENTRY end
    if to >= first then
      keep(key, state, first, to, nil, to + ENTRY, last, period, warmup, s, x, y, z)
      return
    end
    if at <= now then
      if z ~= limit then x, y, z = x + math.min(y, 1), 0, limit end
      x, y = gain(x, y, -cost, limit, period)
      s, x = math.min(warmup, s + taken), x - extra
    end
    keep(key, state, first, first, nil, first, last, period, warmup, s, x, y, z)
  end

  -- Returns the calendar window that holds a time not before start, where the window starts whose end is the first of stops.
  function special.window(at, start, stops)
    for stop in string.gmatch(stops, '%d+') do
      stop = tonumber(stop)
      if at < stop then return start, stop end
      start = stop
    end
  end

  -- The slices of a sliding counter, as they are now.
  function special.counter(key, width, slices)
    local size = slices + 1 -- slices in the ring: those of a window, and one that the window has left in part
    local behind = 32 + 8 * size

    local function slot(n) return 32 + 8 * (n % size) end

    local function ring(from, to) -- the permits of these slices, in order
      local first, last = slot(from), slot(to) + 7
      if first < last then return call('GETRANGE', key, first, last) end
      return call('GETRANGE', key, first, behind - 1) .. call('GETRANGE', key, 32, last)
    end

    local newest, used, count, waiting -- as they are kept; without newest there is no ring whose permits count
    local head = call('GETRANGE', key, 0, 31)
    if head ~= '' then newest, used, count, waiting = struct.unpack('<dddd', head) end
    -- Damaged numbers that are kept on would let everybody pass.
    if newest and not (used >= 0 and math.abs(newest + used) < math.huge) then newest = nil end
    local present = math.max(math.floor(now / width), newest or 0)

    local ahead, begun = {}, {} -- the slices that calls wait for, and those of them that are not to come any more
    if waiting and waiting > 0 then
      local tail = call('GETRANGE', key, behind, behind + 16 * waiting - 1)
      for i = 1, #tail, 16 do
        local n, permits = struct.unpack('<dd', tail, i)
        table.insert(n <= present and begun or ahead, { n, permits })
      end
    end

    if not newest or present >= newest + size then
      newest, used, count = nil, 0, 0
    elseif present > newest then
      local left = ring(newest + 1, present)
      for i = 1, #left, 8 do used = used - struct.unpack('<d', left, i) end
    end
    while begun[1] and begun[1][1] <= present - size do table.remove(begun, 1) end
    for _, slice in ipairs(begun) do used = used + slice[2] end
    local counter = { newest = newest, present = present, last = ahead[1] and ahead[#ahead][1] or present, total = used }
    for _, slice in ipairs(ahead) do counter.total = counter.total + slice[2] end

    function counter.each(see) -- until it returns true, the oldest slice first
      if newest then
        local permits = ring(present - slices, newest)
        for i = 1, #permits - 8, 8 do
          if see(present - slices + (i - 1) / 8, (struct.unpack('<d', permits, i))) then return end
        end
        if see(newest, count) then return end
      end
      for _, list in ipairs { begun, ahead } do
        for _, slice in ipairs(list) do
          if see(slice[1], slice[2]) then return end
        end
      end
    end

    function counter.add(number, permits)
      local current = count
      if newest and present > newest then
        call('SETRANGE', key, slot(newest), struct.pack('<d', count))
        for n = newest + 1, present do call('SETRANGE', key, slot(n), string.rep('\0', 8)) end
        current = 0
      end
      if number == present then
        used, current = used + permits, current + permits
      else
        local i = 1
        while ahead[i] and ahead[i][1] < number do i = i + 1 end
        if not ahead[i] or ahead[i][1] > number then table.insert(ahead, i, { number, 0 }) end
        ahead[i][2] = ahead[i][2] + permits
      end
      if begun[1] and begun[#begun][1] == present then current = current + table.remove(begun)[2] end
      local state = struct.pack('<dddd', present, used, current, #ahead)
      if newest then
        call('SETRANGE', key, 0, state)
      else
        call('SET', key, state .. string.rep('\0', 8 * size))
      end
      for _, slice in ipairs(begun) do call('SETRANGE', key, slot(slice[1]), struct.pack('<d', slice[2])) end
      local tail = {}
      for i, slice in ipairs(ahead) do tail[i] = struct.pack('<dd', slice[1], slice[2]) end
      if tail[1] then call('SETRANGE', key, behind, table.concat(tail)) end
      return current
    end

    function counter.take(number, permits)
      if not newest and not begun[1] and not ahead[1] then return end
      for i, slice in ipairs(ahead) do
        if slice[1] == number then
          slice[2] = slice[2] - permits
          if slice[2] <= 0 then table.remove(ahead, i) end
          break
        end
      end
      local current = counter.add(present, 0)
      special.expire(key, ((ahead[1] and ahead[#ahead][1] or present) + size) * width)
      if number == present then
        permits = math.min(permits, current) -- after a reset there may be less
        call('SETRANGE', key, 8, struct.pack('<dd', used - permits, current - permits))
      elseif number < present and number >= present - slices then
        local from = slot(number)
        local count = struct.unpack('<d', call('GETRANGE', key, from, from + 7))
        permits = math.min(permits, count)
        call('SETRANGE', key, from, struct.pack('<d', count - permits))
        call('SETRANGE', key, 8, struct.pack('<d', used - permits))
      end
    end
    return counter
  end

  -- The check of the less frequent kinds: the earliest time; a function that commits and returns what is used then, and of a
  -- WARM rule the price; and how many permits the rule would admit, if that is known.
  function special.check(key, kind, limit, cost, a, b, text)
    local WARM, COUNTER, CALENDAR_MEMBERS, BLOCK = 6, 7, 9, 10
    local expire = special.expire

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
      local s, x, y, z = special.state(state, b)
      if z ~= limit then x, y = x + math.min(y, 1), 0 end
      return math.max(now, x + math.min(y, 1)), function(at)
        if x < at then s = math.min(b, s + at - x) end
        -- The permits that idling stored above half of the warm-up cost up to three times as much.
        local above = math.max(0, s - math.floor(b / 2))
        local worth = gain(0, 0, cost, limit, a)
        local cold = math.min(above, worth)
        local extra, taken = ceiling(2 * cold, 2 * above - cold, b), math.min(s, worth)
        special.charge(key, state, struct.pack('<ddddd', at, cost, limit, extra, taken), a, b)
        return nil, extra, taken
      end
    end

    if kind == COUNTER then
      local counter = special.counter(key, a, b)
      local first, excess = counter.present, counter.total + cost - limit
      if excess > 0 then
        counter.each(function(n, permits)
          excess = excess - permits
          if excess <= 0 then first = math.max(first, n + b + 1) end
          return excess <= 0
        end)
      end
      return math.max(now, first * a), function(at, counts)
        local slice = math.max(math.floor(at / a), counter.present)
        local last, used = math.max(counter.last, slice), 0
        if counts then
          if slice >= last - b then used = cost end
          counter.each(function(n, permits) if n >= last - b then used = used + permits end end)
        end
        counter.add(slice, cost)
        if slice ~= counter.newest then expire(key, (last + b + 1) * a) end
        return used
      end, math.max(0, limit - counter.total)
    end

    -- MEMBERS and CALENDAR_MEMBERS
    local since = now - a -- members admitted later count
    if kind == CALENDAR_MEMBERS then since = a - 1 end
    local known = call('ZSCORE', key, text)
    if known and tonumber(known) > since then return now, function() end end
    local index = string.format('%d', -limit) -- of the newest member which must have left the window before another one fits in
    local last = tonumber(call('ZRANGE', key, index, index, 'WITHSCORES')[2])
    local earliest = now
    if last and last > since then earliest = kind == CALENDAR_MEMBERS and b or last + a end
    return earliest, function(at, counts)
      local used = counts and call('ZCOUNT', key, string.format('(%d', since), '+inf') + 1
      call('ZREMRANGEBYSCORE', key, '-inf', string.format('%d', since))
      call('ZADD', key, string.format('%d', at), text)
      expire(key, kind == CALENDAR_MEMBERS and b or at + a)
      return used
    end
  end
end

-- Rule i and those behind it: checks on the way down, with at the earliest time that suits the rules before, and commits on
-- the way up, with at the time that suits all. Returns that time if the call is admitted, else false; then a report; then the
-- number of the first of these rules that refuses, or 0 with a time for a report if a calendar window is not known.
local function decide(decide, i, at, refused, call, now, special, gain)
  local key = KEYS[i]
  if not key then
    if special and not refused then
      for _, c in ipairs(special.calendars) do
        local known = tonumber(string.match(c[5], '(%d+) $')) or c[4]
        if (at < c[1] or at >= c[2]) and (at < c[3] or at >= known) then return false, -at, 0 end
      end
    end
    return not refused and at, ''
  end
  local LOG, CALENDAR, BUCKET, PREPAID, CALENDAR_MEMBERS, BLOCK = 1, 3, 4, 5, 9, 10
  local SHADOW, TRIGGER = -1, -2
  local kind, limit, cost, a, b, wait, text = struct.unpack('<dddddds', ARGV[i])

  -- Check.
  local earliest = now
  local x, y, z, state, expiry, open, most, queued, commit, room -- x, y and z are the state as in the table above
  if kind == LOG then
    local permit = call('LINDEX', key, text)
    if permit then earliest = struct.unpack('<d', permit) + a end
  elseif kind > PREPAID then
    if kind == CALENDAR_MEMBERS and (now < a or now >= b) then return false, -now, 0 end
    earliest, commit, room = special.check(key, kind, limit, cost, a, b, text)
  else
    state = call('GET', key)
    if kind >= BUCKET then
      queued = state and #state > 32
      if queued and not special then return false, -now, 0 end
      if state then
        expiry, x, y, z = struct.unpack('<dddd', state, #state - 31)
        if z ~= limit then x, y = x + math.min(y, 1), 0 end
      end
      if queued then
        earliest = special.queue(state, kind == PREPAID, limit, cost, a, b)
      elseif state and x >= now then
        local t, parts = gain(x, y, b, limit, a)
        earliest = parts > 0 and t + 1 or t
      else
        x, y = now, 0
      end
    else
      if state then x, y, z = struct.unpack('<ddd', state, #state - 23) end
      open = state and now < y
      if not open then
        z = 0
      elseif z + cost > limit then
        earliest = y
      end
      most = z
      if open and #state > 24 then -- nobody passes those who wait for a window that is too full
        for from = #state - 47, 1, -24 do
          if most >= limit then break end -- no window before this one matters
          local _, stop, used = struct.unpack('<ddd', state, from)
          if stop > now then
            if earliest == now and used + cost > limit then earliest = stop end
            most = math.max(most, used)
          end
        end
      end
      if kind == CALENDAR then
        if special then -- the call may be admitted in another window than the present one
          table.insert(special.calendars, { open and x or now, open and y or now, a, b, text })
        elseif (not open or now < x) and (now < a or now >= b) then
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
    at, report, by = decide(decide, i + 1, at, refused, call, now, special, gain)
  else
    at, report = not refused and at, '' -- what decide would say
  end
  if by == 0 then return false, report, 0 end

  if refuses then
    if queued and cost > 1 then room = special.room(state, kind == PREPAID, limit, cost, a, b) end
    local high = (kind == LOG or kind == BUCKET and not queued) and cost - 1 or 0
    room = room or most and limit - most or 0
    if room < 0 then room = 0 end
    while room < high do -- by bisection, as a smaller cost looks at an older permit
      local middle = math.ceil((room + high) / 2)
      local t, parts = now, 0
      if kind == LOG then
        local permit = call('LINDEX', key, middle - limit - 1)
        if permit then t = struct.unpack('<d', permit) + a end
      else
        t, parts = gain(x, y, b - cost + middle, limit, a)
      end
      if t + math.min(parts, 1) <= now then room = middle else high = middle - 1 end
    end
    local own = struct.pack('<dddd', now, i, earliest, room)
    return at, report == '' and own or report .. own, wait ~= SHADOW and i or by
  end
  if not at then
    if kind == BLOCK and by == i + 1 and special.op ~= 'peek' then
      call('SET', key, struct.pack('<d', now + a), 'PX', math.ceil(a / 1000))
    end
    return false, report, by
  end
  if special and special.op == 'peek' then return at, report end

  -- Commit.
  local used, extra, taken -- by now; a trigger asks. By a WARM rule.
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
    local count = cost
    if count > limit then count = limit end -- a trigger's cost has no bound
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
    if wait == TRIGGER then over = over - count end -- which it goes beyond, and still is what it was if this is given back
    if at > now then -- those that have not left the window still count if this place is given back
      while over > 0 and struct.unpack('<d', call('LINDEX', key, '0')) <= now - a do
        call('LPOP', key)
        over = over - 1
      end
    elseif over == 1 then
      call('LPOP', key)
    elseif over > 1 then
      call('LPOP', key, over)
    end
    if at > now then
      local needed = math.ceil((at - now) / 1000 + lifetime + 2)
      if ttl < needed then call('PEXPIRE', key, needed) end
    elseif ttl < a / 1000 then
      call('PEXPIRE', key, math.ceil(lifetime))
    end
  elseif commit then
    used, extra, taken = commit(at, wait == TRIGGER)
    if extra then report = report .. struct.pack('<dddd', now, -i, extra, taken) end
  elseif kind >= BUCKET and special and (at > now or queued) then
    special.charge(key, state, struct.pack('<ddddd', at, cost, limit, 0, 0), a, 0)
  elseif kind >= BUCKET then
    if x < at then x, y = at, 0 end
    x, y = gain(x, y, cost, limit, a)
    if state and x + 1 <= expiry then
      call('SETRANGE', key, '8', struct.pack('<ddd', x, y, limit))
    else
      expiry = x + 1
      if state then expiry = expiry + math.floor(a / 8) end -- so that under load most calls find it late enough
      call('SET', key, struct.pack('<dddd', expiry, x, y, limit), 'PXAT', string.format('%d', expiry / 1000 + 1))
    end
  elseif open and at >= x and at < y then
    used = z + cost
    call('SETRANGE', key, #state == 24 and '16' or #state - 8, struct.pack('<d', used))
  else
    local start, stop = at, at + a -- the window that holds at, unless it is open already
    if kind == CALENDAR then
      start, stop = a, b
      if at >= b then start, stop = special.window(at, b, text) end
    end
    used = cost
    if open and at < x then -- before a window that calls wait for
      local from = #state - 23 -- of the first such window
      while from > 1 and at < struct.unpack('<d', state, from - 24) do from = from - 24 end
      local before, behind = string.sub(state, 1, from - 1), string.sub(state, from)
      local next, last, n = struct.unpack('<ddd', state, from)
      if from > 1 and at < struct.unpack('<d', state, from - 16) then
        start, stop, used = struct.unpack('<ddd', state, from - 24)
        before, used = string.sub(before, 1, -25), used + cost
      elseif kind ~= CALENDAR and stop > next then
        stop, used, behind = last, n + cost, string.sub(behind, 25)
      end
      call('SET', key, before .. struct.pack('<ddd', start, stop, used) .. behind, 'KEEPTTL')
    else
      state = open and state or ''
      while #state > 0 and struct.unpack('<d', state, 9) <= now do state = string.sub(state, 25) end
      call('SET', key, state .. struct.pack('<ddd', start, stop, cost), 'PXAT', string.format('%d', math.ceil(stop / 1000)))
    end
  end
  if wait == TRIGGER and used and used >= limit and used - cost < limit then
    report = report .. struct.pack('<dddd', now, i, now, used)
  end
  return at, report, by
end

if special and (special.op == 'return' or special.op == 'undo') then
  -- Gives back what rule i was charged at a time, as far as it still counts.
  local function giveBack(i, at)
    local LOG, CALENDAR, PREPAID, WARM, COUNTER, CALENDAR_MEMBERS = 1, 3, 5, 6, 7, 9
    local key = KEYS[i]
    local kind, limit, cost, a, b, _, text = struct.unpack('<dddddds', ARGV[i])
    if kind == LOG then
      call('LREM', key, -cost, struct.pack('<d', at))
    elseif kind <= CALENDAR then
      local state = call('GET', key) or ''
      for from = #state - 23, 1, -24 do
        local start, stop, used = struct.unpack('<ddd', state, from)
        if start <= at and at < stop then
          used = math.max(0, used - cost)
          local stays = start <= now and not (start == at and special.op == 'undo') -- though nothing may be left in it
          local left = (used > 0 or stays) and struct.pack('<ddd', start, stop, used) or ''
          state = string.sub(state, 1, from - 1) .. left .. string.sub(state, from + 24)
          if state ~= '' then call('SET', key, state, 'KEEPTTL') else call('DEL', key) end
          return
        end
      end
    elseif kind <= WARM then
      local state = call('GET', key)
      local extra, taken, warmup = 0, 0, 0
      if kind == WARM then
        extra, taken = string.match(text, '(%d+) (%d+)')
        warmup = b
      end
      if state then special.giveBack(key, state, struct.pack('<ddddd', at, cost, limit, extra, taken), a, warmup) end
    elseif kind == COUNTER then
      special.counter(key, a, b).take(math.floor(at / a), cost)
    elseif kind <= CALENDAR_MEMBERS and tonumber(call('ZSCORE', key, text) or 0) == at then
      call('ZREM', key, text)
    end
  end

  local at = tonumber(ARGV[#KEYS + 2])
  for i = 1, #KEYS do giveBack(i, at) end
  return at
end

local first = now
if special then
  local operand = tonumber(ARGV[#KEYS + 2]) or 0
  first = special.op == 'from' and math.max(now, operand) or now + operand
end
local at, report = decide(decide, 1, first, special and special.op == 'refuse', call, now, special, gain)
if at and (at > now or report ~= '') then return { at, now, report } end
return at or report ~= '' and report or now
