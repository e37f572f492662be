-- Decides one call against all of its rules: checks every rule first, then commits to all of them or to none.
--
-- KEYS[i] holds the state of rule i for its subject; ARGV[i] is the rule: five little-endian doubles and a text, called
-- kind, limit, cost, a, b and index below. Two more arguments may follow: how long the call would wait, and an operation
-- other than to decide: 'peek' commits nothing; 'return' gives back what was admitted at the time that then stands in the
-- place of the wait. Every time is in whole microseconds of this server's clock; every state is of integers, kept as
-- little-endian doubles.
--
--   kind      a       b      state at KEYS[i]
--   LOG       period         list: the time of every permit, oldest first; index is that of the newest permit which
--                            must have left the window before cost more fit in
--   FIXED     period         string: start and stop of the open window, permits used in it
--   CALENDAR  start   stop   the same; a and b are the calendar window which the caller takes for the present one
--   BUCKET    period  burst  string: x, y, z. The bucket is full again at x + y/z, GCRA's theoretical arrival time; z is
--                            the limit at the last charge.
--
-- The reply is one of
--   time       admitted then
--   -time      nothing was done: ask again, with the calendar windows that hold this time
--   a string   refused: four doubles for each refusing rule, the last rule first: this server's time, the rule's
--              number, the earliest time at which it admits the cost, and how many permits it would admit now
--
-- Redis runs one script at a time, so every microsecond here is one that no other client gets. Hence the few commands, the
-- recursion (a rule's state stays in local variables from check to commit), and the few upvalues, which Lua allocates.

local call = redis.call
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

-- Stores when a bucket is full, until then.
local function store(key, x, y, limit)
  call('SET', key, struct.pack('<ddd', x, y, limit), 'PXAT', string.format('%d', math.ceil((x + 1) / 1000)))
end

-- Rule i and those behind it: checks on the way down, with at the earliest time that suits the rules before, and commits
-- on the way up, with at the time that suits all. Returns that time if the call is admitted, else false and the reply.
local function decide(i, at, latest, commit)
  local LOG, FIXED, BUCKET = 1, 2, 4
  local key = KEYS[i]
  if not key then
    return at <= latest and at, ''
  end
  local kind, limit, cost, a, b, index = struct.unpack('<ddddds', ARGV[i])
  local earliest = now
  local x, y, z -- the state that is a string

  if kind == LOG then
    local permit = call('LINDEX', key, index)
    if permit then earliest = struct.unpack('<d', permit) + a end
  else
    local state = call('GET', key)
    if state then x, y, z = struct.unpack('<ddd', state) end
    if kind == BUCKET then
      if state and z ~= limit then x, y = x + math.min(y, 1), 0 end
      if state and x >= now then
        local t, parts = gain(x, y, cost - b, limit, a)
        earliest = t + math.min(parts, 1)
      else
        x, y = now, 0
      end
    elseif state and now < y then
      if z + cost > limit then earliest = y end
    elseif kind == FIXED then
      x, y, z = now, now + a, 0
    elseif a <= now and now < b then
      x, y, z = a, b, 0
    else
      return false, -now
    end
  end

  if earliest > at then at = earliest end
  local reply
  at, reply = decide(i + 1, at, latest, commit)

  if not at then
    if earliest > now and reply ~= -now then
      local room, high = 0, cost - 1 -- by bisection, as a smaller cost looks at an older permit
      while room < high do
        local middle = math.ceil((room + high) / 2)
        local fits
        if kind == LOG then
          local permit = call('LINDEX', key, middle - limit - 1)
          fits = not permit or struct.unpack('<d', permit) + a <= now
        elseif kind == BUCKET then
          local t, parts = gain(x, y, middle - b, limit, a)
          fits = t + math.min(parts, 1) <= now
        else
          fits = z + middle <= limit
        end
        if fits then room = middle else high = middle - 1 end
      end
      reply = reply .. struct.pack('<dddd', now, i, earliest, room)
    end
    return false, reply
  end
  if not commit then return at end

  if kind == LOG then
    local ttl = call('PTTL', key)
    local permit = struct.pack('<d', at)
    local length
    if cost == 1 then
      length = call('RPUSH', key, permit)
    else
      local permits = {}
      for n = 1, math.min(cost, 1000) do permits[n] = permit end -- Lua's stack holds no more than some thousands
      for done = 0, cost - 1, 1000 do
        length = call('RPUSH', key, unpack(permits, 1, math.min(cost - done, 1000)))
      end
    end
    local over = length - limit
    if over == 1 then
      call('LPOP', key)
    elseif over > 1 then
      call('LPOP', key, over)
    end
    -- An eighth more than needed, so that under load most calls find the expiry late enough.
    if ttl < a / 1000 then call('PEXPIRE', key, math.ceil(a * 9 / 8000)) end
  elseif kind == BUCKET then
    if x < at then x, y = at, 0 end
    x, y = gain(x, y, cost, limit, a)
    store(key, x, y, limit)
  elseif z > 0 then
    call('SETRANGE', key, '16', struct.pack('<d', z + cost))
  else
    call('SET', key, struct.pack('<ddd', x, y, cost), 'PXAT', string.format('%d', math.ceil(y / 1000)))
  end
  return at
end

local wait, op = ARGV[#KEYS + 1], ARGV[#KEYS + 2]

if op == 'return' then
  local at = tonumber(wait)
  for i, key in ipairs(KEYS) do
    local kind, limit, cost, a = struct.unpack('<dddd', ARGV[i])
    if kind == 1 then
      call('LREM', key, -cost, struct.pack('<d', at))
    else
      local state = call('GET', key)
      local x, y, z = 0, 0, 0
      if state then x, y, z = struct.unpack('<ddd', state) end
      if kind == 4 then
        if z ~= limit then x, y = x + math.min(y, 1), 0 end
        if x >= now then
          x, y = gain(x, y, -cost, limit, a)
          store(key, x, y, limit)
        end
      elseif x <= at and at < y then
        call('SETRANGE', key, '16', struct.pack('<d', math.max(0, z - cost)))
      end
    end
  end
  return at
end

local at, reply = decide(1, now, now + (wait or 0), not op)
return at or reply
