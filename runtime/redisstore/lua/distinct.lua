-- Counts the members that were admitted in a sliding or a calendar window. The state is a sorted set of members; the score of a member is
-- the time of its admission. A known member costs nothing. It stays known until its admission leaves the window. text is the member. For a
-- sliding window, a is the period. For a calendar window, a and b are its start and stop.
--
-- For an anchored window, text has the start and stop of the window of the claim's own anchor before the member. The first element of the state
-- is the window that was opened last: a zero byte and the start, with minus the stop as its score. So it is before all members.
local states = use('states')
local distinct = { reserves = states.at_once }
local floor, max, min = math.floor, math.max, math.min

-- Returns the time of the admission at an index, or nothing if there is none. If the set is damaged, it counts as empty, and the next
-- charge deletes it.
local function time_at(c, index, now)
  if c.damaged then return end
  local time = tonumber(call('ZRANGE', c.key, index, index, 'WITHSCORES')[2])
  if not time or time % 1 == 0 and time <= now + HORIZON then return time end
  states.damage(c)
  c.damaged = true
end

-- Splits the text of a claim of an anchor, and reads the window that was opened last. If that one is open, a and b are its bounds.
local function read_window(c, now)
  local start, stop, member = string.match(c.text, '^(%S+) (%S+) (.*)$')
  local first = call('ZRANGE', c.key, '0', '0', 'WITHSCORES')
  c.text, c.a, c.b, c.since, c.window, c.open = member, tonumber(start), tonumber(stop), now, first[1], false
  if not c.window then return end
  local began, ends = tonumber(string.match(c.window, '^%z(%d+)$')), -(tonumber(first[2]) or 0)
  if not began or not states.valid(ends) or ends <= began or ends > now + HORIZON then
    states.damage(c)
    c.damaged = true
  elseif now < ends then
    c.a, c.b, c.since, c.open = began, ends, began - 1, true
  end
end

-- Opens the window of an anchor, unless one is open. If the clock was set back to before the open one, that one begins earlier.
local function open_window(c, now)
  local start = c.open and min(c.a, now) or now
  local window = '\0' .. states.integer(start)
  if window ~= c.window then
    if c.window then call('ZREM', c.key, c.window) end
    call('ZADD', c.key, states.integer(-c.b), window)
    states.expire(c.key, c.b)
  end
  c.a, c.since, c.window, c.open = start, start - 1, window, true
end

-- If the clock was set back, admissions of the next calendar window count as well.
function distinct.check(c, now)
  c.damaged = false
  if c.kind == DISTINCT then
    c.since = now - c.a
  elseif c.kind == DISTINCT_CALENDAR then
    c.since = c.a - 1
  else
    read_window(c, now)
  end
  local admitted = call('ZSCORE', c.key, c.text)
  c.admitted = admitted and tonumber(admitted)
  c.known = c.admitted and c.admitted > c.since
  if c.kind ~= DISTINCT and not c.open and (now < c.a or now >= c.b) then return now, OTHER_WINDOW end
  return distinct.earliest(c, c.cost, now, now)
end

-- Returns when fewer than n members count: now, or when the n-th newest one leaves.
local function below(c, n, now)
  local admitted = time_at(c, states.integer(-n), now)
  if not admitted or admitted <= c.since then return now end
  return c.kind == DISTINCT and admitted + c.a or c.b
end

-- Goes by the member as it will be at from: it may no longer be known then.
function distinct.earliest(c, _, now, from)
  if c.known and (c.kind ~= DISTINCT or c.admitted > from - c.a) then return from end
  return max(from, below(c, c.limit, now))
end

function distinct.room(c, now)
  if c.damaged then return c.limit end
  return c.limit - call('ZCOUNT', c.key, '(' .. states.integer(c.since), '+inf')
end

function distinct.full(c, now) return below(c, 1, now) end

-- Goes by the members that count, whether the claim's own is one of them or not.
function distinct.more(c, room, now) return room < c.limit and below(c, c.limit - room, now) or now end

-- Removes members that have left the window.
local function trim(c)
  local first = c.kind == DISTINCT_ANCHORED and 1 or 0
  local gone = call('ZCOUNT', c.key, '-inf', states.integer(c.since)) - first
  if gone > 0 then call('ZREMRANGEBYRANK', c.key, first, first + min(gone, MAX_REMOVED) - 1) end
end

-- Only the first charge in each calendar window sets the expiry. In a sliding window, the first charge in each eighth of the period does.
function distinct.commit(c, n, now)
  if c.known then return states.record(c, 0) end
  local newest, began, stop = time_at(c, '-1', now) or 0, c.a, c.b
  if c.damaged then
    call('DEL', c.key)
    c.damaged, c.window = false, nil
  else
    trim(c)
  end
  call('ZADD', c.key, states.integer(now), c.text)
  if c.kind == DISTINCT_ANCHORED then return open_window(c, now) end
  if c.kind == DISTINCT then
    local step = floor(c.a / 8) + 1
    began = now - now % step
    stop = began + step + c.a
  end
  if newest < began then states.expire(c.key, stop) end
end

function distinct.charges(c, _, tell)
  local list = c.damaged and {} or call('ZRANGE', c.key, -MOST_TOLD - c.wait, -1 - c.wait, 'WITHSCORES')
  for i = 2, #list, 2 do
    if tonumber(list[i]) > c.since then tell(tonumber(list[i]), 1) end
  end
end

-- Leaves the window of an anchor open, also without members.
function distinct.give_back(c, n, now, at)
  if c.admitted == at then call('ZREM', c.key, c.text) end
end
