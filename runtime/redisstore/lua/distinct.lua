-- Counts the members that were admitted in a sliding or a calendar window. The state is a sorted set of members; the score of a member is
-- the time of its admission. A known member costs nothing. It stays known until its admission leaves the window. text is the member. For a
-- sliding window, a is the period. For a calendar window, a and b are its start and stop.
local states = use('states')
local distinct = { has_text = true, reserves = states.at_once }
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

-- If the clock was set back, admissions of the next calendar window count as well.
function distinct.check(c, now)
  local admitted = call('ZSCORE', c.key, c.text)
  c.damaged = false
  c.admitted, c.since = admitted and tonumber(admitted), now - c.a
  if c.kind == DISTINCT_CALENDAR then
    if now < c.a or now >= c.b then return now, OTHER_WINDOW end
    c.since = c.a - 1
  end
  c.known = c.admitted and c.admitted > c.since
  return distinct.earliest(c, c.cost, now, now)
end

-- Returns when fewer than n members count: now, or when the n-th newest one leaves.
local function below(c, n, now)
  local admitted = time_at(c, states.integer(-n), now)
  if not admitted or admitted <= c.since then return now end
  return c.kind == DISTINCT_CALENDAR and c.b or admitted + c.a
end

-- Goes by the member as it will be at from: it may no longer be known then.
function distinct.earliest(c, _, now, from)
  if c.known and (c.kind == DISTINCT_CALENDAR or c.admitted > from - c.a) then return from end
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
  local gone = call('ZCOUNT', c.key, '-inf', states.integer(c.since))
  if gone > 0 then call('ZREMRANGEBYRANK', c.key, '0', min(gone, MAX_REMOVED) - 1) end
end

-- Only the first charge in each calendar window sets the expiry. In a sliding window, the first charge in each eighth of the period does.
function distinct.commit(c, n, now)
  if c.known then return states.record(c, 0) end
  local newest, began, stop = time_at(c, '-1', now) or 0, c.a, c.b
  if c.damaged then
    call('DEL', c.key)
    c.damaged = false
  else
    trim(c)
  end
  call('ZADD', c.key, states.integer(now), c.text)
  if c.kind ~= DISTINCT_CALENDAR then
    local step = floor(c.a / 8) + 1
    began = now - now % step
    stop = began + step + c.a
  end
  if newest < began then states.expire(c.key, stop) end
end

function distinct.charges(c, _, tell)
  local list = c.damaged and {} or call('ZRANGE', c.key, -MOST_TOLD - c.wait, -1 - c.wait, 'WITHSCORES')
  for i = 2, #list, 2 do tell(tonumber(list[i]), 1) end
end

function distinct.give_back(c, n, now, at)
  if c.admitted == at then call('ZREM', c.key, c.text) end
end
