-- An exact sliding window. The state is a list of the time of every permit, oldest first. Permits whose time is to come belong to
-- calls that wait, and count already. a is the period, text the index of the permit that must have left the window.
local sliding_window = {}

-- Computes what is the same for all subjects: the step, about an eighth of the period. Only the first charge in a step sets the expiry.
function sliding_window.prepare(c) c.step = (c.a - c.a % 8) / 8 + 1 end

local MAX_MOVED = 64 -- later permits that a charge is put before; if there are more, it takes the time of the newest one

-- Returns the time of a permit. If the list is damaged, it deletes the list and returns 0.
local function time_of(c, permit, now)
  if #permit ~= 8 then fail_later_layout(#permit, 8) end
  local time = parse('<d', permit)
  if time % 1 == 0 and time >= 0 and time <= now + HORIZON then return time end
  damage(c)
  call('DEL', c.key)
  return 0
end

-- Returns the time of the permit at an index, or 0 if there is none.
local function time_at(c, index, now)
  local permit = call('LINDEX', c.key, index)
  return permit and time_of(c, permit, now) or 0
end

function sliding_window.check(c, now)
  c.newest = false
  local permit = call('LINDEX', c.key, c.text)
  if not permit then return now end
  local leaves = time_of(c, permit, now) + c.a
  return leaves > now and leaves or now
end

-- Loads the time of the newest permit, which only a charge needs.
function sliding_window.load(c, now)
  local permit = call('LINDEX', c.key, '-1')
  local newest = permit and time_of(c, permit, now) or 0
  c.newest = newest
  return newest
end

function sliding_window.earliest(c, now, from) return max(from, time_at(c, integer(c.cost - c.limit - 1), now) + c.a) end

-- Returns how many permits at most high are later than a time.
local function later_than(c, now, time, high)
  local low = 0
  high = min(high, call('LLEN', c.key))
  while low < high do
    local middle = ceil((low + high) / 2)
    if time_at(c, -middle, now) > time then low = middle else high = middle - 1 end
  end
  return low
end

-- Deletes the permits that have left the window, and returns how many there were.
local function trim(c, now, length)
  local since = now - c.a
  if length == 0 or time_at(c, '0', now) > since then return 0 end
  local low, high = 0, 1 -- the permit at low has left, and the one at high may have
  while high < length and time_at(c, integer(high), now) <= since do low, high = high, 2 * high end
  high = min(high, length)
  while low + 1 < high do
    local middle = floor((low + high) / 2)
    if time_at(c, integer(middle), now) <= since then low = middle else high = middle end
  end
  call('LPOP', c.key, integer(high))
  return high
end

function sliding_window.room(c, now)
  local length = call('LLEN', c.key)
  return max(0, c.limit - length + trim(c, now, length))
end

function sliding_window.full(c, now) return max(now, (c.newest or time_at(c, '-1', now)) + c.a) end

function sliding_window.reserves(c, now, at) return sliding_window.earliest(c, now, at) == at end

local function append(c, n, permit)
  local permits, length = {}, 0
  for i = 1, min(n, 1000) do permits[i] = permit end -- Lua's stack holds no more than some thousands
  for done = 0, n - 1, 1000 do
    length = call('RPUSH', c.key, unpack(permits, 1, min(n - done, 1000)))
  end
  return length
end

-- Inserts n permits of a time before the later ones, whose number is given. The list is never empty meanwhile, so it keeps its expiry.
local function insert(c, n, permit, later)
  local tail = call('LRANGE', c.key, -later, -1)
  for i = 1, later do call('LSET', c.key, i - 1 - later, i <= n and permit or tail[i - n]) end
  if n > later then append(c, n - later, permit) end
  return call('RPUSH', c.key, unpack(tail, max(1, later - n + 1), later))
end

-- Drops permits beyond the limit. What is in the window still counts if this charge is given back, or for rules of other limits.
local function drop(c, over, now)
  while over > 0 and time_at(c, '0', now) <= now - c.a do
    call('LPOP', c.key)
    over = over - 1
  end
end

-- Charges n permits. Of a charge as of now, all that is beyond the limit leaves the list: to wait for more would be to wait for ever.
function sliding_window.commit(c, n, now, at)
  local newest, limit, at_once, length = c.newest or sliding_window.load(c, now), c.limit, at == now, nil
  if n > limit then n = limit end -- the cost of a trigger has no bound
  if newest > at and time_at(c, -1 - MAX_MOVED, now) > at then
    record(c, newest)
    at = newest
  end
  local permit = pack('<d', at)
  if newest > at then
    length = insert(c, n, permit, later_than(c, now, at, MAX_MOVED))
  else
    length = n == 1 and call('RPUSH', c.key, permit) or append(c, n, permit)
    c.newest = at
    local began = at - at % c.step
    if newest < began then expire(c.key, began + c.step + c.a) end
  end
  if length == limit + 1 and at_once then
    call('LPOP', c.key)
  elseif length > limit then
    if at_once then call('LPOP', c.key, length - limit) else drop(c, length - limit, now) end
  end
end

function sliding_window.last(c, n, now, at) return time_at(c, '-1', now) <= at end

function sliding_window.give_back(c, n, now, at)
  if at > now - c.a then call('LREM', c.key, -n, pack('<d', at)) end
end
