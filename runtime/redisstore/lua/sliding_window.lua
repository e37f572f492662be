-- An exact sliding window. The state is a list of the time of every permit, oldest first. Permits whose time is to come belong to
-- calls that wait, and count already. a is the period, text the index of the permit that must have left the window.
local sliding_window = {}

local MAX_MOVED = 64 -- later permits that a charge is put before; if there are more, it takes the time of the newest one

function sliding_window.check(c, now)
  local permit = call('LINDEX', c.key, c.text)
  local leaves = permit and parse('<d', permit) + c.a or now
  c.leaves = leaves
  return leaves > now and leaves or now
end

function sliding_window.earliest(c, now, from)
  return max(from, c.leaves)
end

-- Returns how many permits at most high are later than a time.
local function later_than(c, time, high)
  local low = 0
  high = min(high, call('LLEN', c.key))
  while low < high do
    local middle = ceil((low + high) / 2)
    if parse('<d', call('LINDEX', c.key, -middle)) > time then low = middle else high = middle - 1 end
  end
  return low
end

function sliding_window.room(c, now) return c.limit - later_than(c, now - c.a, c.limit) end

function sliding_window.full(c, now)
  local newest = call('LINDEX', c.key, '-1')
  return max(now, newest and parse('<d', newest) + c.a or now)
end

function sliding_window.reserves(c, now, at) return sliding_window.earliest(c, now, at) == at end

local function append(c, n, permit)
  if n == 1 then return call('RPUSH', c.key, permit) end
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
  call('RPUSH', c.key, unpack(tail, max(1, later - n + 1), later))
end

-- Drops what is beyond the limit. What is in the window still counts if this charge is given back, or for rules of other limits.
-- Where a charge is admitted now, all that is beyond the limit has left the window.
local function drop(c, over, now, admitted)
  if admitted then
    call('LPOP', c.key, over)
    return
  end
  while over > 0 and parse('<d', call('LINDEX', c.key, '0')) <= now - c.a do
    call('LPOP', c.key)
    over = over - 1
  end
end

-- Charges n permits, and returns the time they are recorded at.
local function record(c, n, now, at, admitted)
  if n > c.limit then n = c.limit end -- the cost of a trigger has no bound
  local newest = call('LINDEX', c.key, '-1')
  newest = newest and parse('<d', newest)
  local length
  if newest and newest > at then
    local far = call('LINDEX', c.key, -1 - MAX_MOVED)
    if far and parse('<d', far) > at then at = newest end
  end
  if newest and newest > at then
    insert(c, n, pack('<d', at), later_than(c, at, MAX_MOVED))
    length = call('LLEN', c.key)
  else
    length = append(c, n, pack('<d', at))
    local step = ceil(c.a / 8) -- the expiry is set once a step, by the first charge of it
    if not newest or floor(newest / step) < floor(at / step) then
      expire(c.key, (floor(at / step) + 1) * step + c.a)
    end
  end
  if length > c.limit then drop(c, length - c.limit, now, admitted) end
  return at
end

function sliding_window.commit(c, n, now, at) record(c, n, now, at, at == now) end

-- Keeps at most the limit in permits: to wait for more would be to wait for ever.
function sliding_window.charge(c, n, now) record(c, n, now, now, true) end

function sliding_window.last(c, n, now, at)
  local newest = call('LINDEX', c.key, '-1')
  return not newest or parse('<d', newest) <= at
end

function sliding_window.give_back(c, n, now, at)
  if at > now - c.a then call('LREM', c.key, -n, pack('<d', at)) end
end

-- Charges permits that are handed out from now to stop, and returns the time they are recorded at.
function sliding_window.lease(c, n, now, stop) return record(c, n, now, stop, true) end
