-- An exact sliding window. The state is a list of the time of every permit, oldest first. Permits with a future time belong to waiting
-- calls, and already count. a is the period. text is the index of the permit that must leave the window before the cost fits.
local sliding_window = {
  counts_running = false, load = false, prepare = false, check = false, commit = false, make_others = false,
}

-- Computes what is the same for all subjects: the length of a step, about an eighth of the period. Only the first charge in each step sets
-- the expiry.
function sliding_window.prepare(c) c.step = (c.a - c.a % 8) / 8 + 1 end

local FEW_TIMES = 500 -- in a list that LREM compares from end to end; that takes about 10 us

-- Returns the time of a permit. If the list is damaged, all its permits have the time 0, and the next charge deletes it.
local function time_of(c, permit, now)
  if #permit ~= 8 then use('states').fail_later_layout(#permit, 8) end
  local time = parse('<d', permit)
  if time % 1 == 0 and time >= 0 and time <= now + HORIZON then return time end
  use('states').damage(c)
  c.damaged = true
  return 0
end

function sliding_window.check(c, now)
  c.newest, c.damaged = false, false
  local permit = call('LINDEX', c.key, c.text)
  if not permit then return now end
  local leaves = time_of(c, permit, now) + c.a
  return leaves > now and leaves or now
end

-- Loads the time of the newest permit, which only a charge needs.
function sliding_window.load(c, now)
  local permit = not c.damaged and call('LINDEX', c.key, '-1')
  local newest = permit and time_of(c, permit, now) or 0
  c.newest = newest
  return newest
end

-- Charges n permits. After a charge for now, the list keeps at most as many permits as the limit, the newest ones: if it is no trigger, the
-- others have left the window. A charge for a later time, and one that keeps, removes only permits that have left the window.
function sliding_window.commit(c, n, now, at)
  local newest, limit, length = c.newest or sliding_window.load(c, now), c.limit, nil
  if c.damaged then
    call('DEL', c.key)
    c.damaged = false
  end
  if n > limit then n = limit end -- the cost of a trigger has no bound
  local later, stored = newest > at and complete(sliding_window).later_than(c, at, now), at
  if later and #later > MAX_MOVED then
    use('states').record(c, newest)
    later, stored = false, newest
  end
  local permit = pack('<d', stored)
  if later then
    length = complete(sliding_window).insert(c, n, permit, later)
  else
    length = n == 1 and call('RPUSH', c.key, permit) or complete(sliding_window).append(c, n, permit)
    c.newest = stored
    local began = stored - stored % c.step
    if newest < began then use('states').expire(c.key, began + c.step + c.a) end
  end
  if length == limit + 1 and at == now and not c.keeps then
    call('LPOP', c.key)
  elseif length > limit then
    local others = complete(sliding_window)
    others.drop(c, at == now and not c.keeps and length - limit or others.search(c, now - c.a + 1, now, length - limit))
  end
end

-- What follows is made when a call first uses it.

local floor, max = math.floor, math.max

-- Returns the time of the permit at an index, or 0 if there is none.
local function time_at(c, index, now)
  local permit = not c.damaged and call('LINDEX', c.key, string.format('%d', index))
  return permit and time_of(c, permit, now) or 0
end

-- Returns how many permits are before a time, but at most a given number. It begins with from, or 0. The search doubles its step after each
-- success, and halves it after each failure.
local function search(c, time, now, most, from)
  local found, step = from or 0, 1
  while step >= 1 do
    if found + step <= most and time_at(c, found + step - 1, now) < time then
      found, step = found + step, 2 * step
    else
      step = floor(step / 2)
    end
  end
  return found
end

sliding_window.search = search

function sliding_window.room(c, now)
  local length = call('LLEN', c.key)
  return c.limit - length + search(c, now - c.a + 1, now, length)
end

function sliding_window.full(c, now) return max(now, (c.newest or time_at(c, -1, now)) + c.a) end

function sliding_window.more(c, room, now)
  return room < c.limit and max(now, time_at(c, room - c.limit, now) + c.a) or now
end

-- What follows is made when a call first uses it.

local states = use('states')
local min = math.min

function sliding_window.earliest(c, n, now, from) return max(from, time_at(c, n - c.limit - 1, now) + c.a) end

-- Removes the n oldest permits. LTRIM returns none of them, so it takes less than a millisecond, however many they are.
function sliding_window.drop(c, n)
  if n > 0 then call('LTRIM', c.key, states.integer(n), '-1') end
end

function sliding_window.charges(c, now, tell)
  for _, permit in ipairs(call('LRANGE', c.key, -MOST_TOLD - c.wait, -1 - c.wait)) do tell(time_of(c, permit, now), c.damaged and 0 or 1) end
end

function sliding_window.reserves(c, now, at) return sliding_window.earliest(c, c.cost, now, at) == at end

function sliding_window.append(c, n, permit)
  local permits, length = {}, 0
  for i = 1, min(n, 1000) do permits[i] = permit end -- Lua's stack holds only a few thousand values
  for done = 0, n - 1, 1000 do
    length = call('RPUSH', c.key, unpack(permits, 1, min(n - done, 1000)))
  end
  return length
end

-- Returns the permits that are later than a time, oldest first. Of more than MAX_MOVED it returns the newest MAX_MOVED + 1.
function sliding_window.later_than(c, time, now)
  local permits = call('LRANGE', c.key, -1 - MAX_MOVED, -1)
  local first = #permits + 1
  while first > 1 and time_of(c, permits[first - 1], now) > time do first = first - 1 end
  return { unpack(permits, first) }
end

-- Inserts a permit n times before the later ones. The list is never empty meanwhile, so it keeps its expiry.
function sliding_window.insert(c, n, permit, later)
  local moved = #later
  for i = 1, moved do call('LSET', c.key, i - 1 - moved, i <= n and permit or later[i - n]) end
  if n > moved then sliding_window.append(c, n - moved, permit) end
  return call('RPUSH', c.key, unpack(later, max(1, moved - n + 1)))
end

-- Charges at most as many permits as the limit, even beyond it, and keeps at most MAX_TIMES, the newest ones. They may be more than the limit:
-- other programs may have a higher one, and what a settlement takes may be given back.
function sliding_window.charge(c, n, now)
  c.keeps = true
  sliding_window.commit(c, n, now, now)
  sliding_window.drop(c, call('LLEN', c.key) - MAX_TIMES)
end

-- The free places of a sliding window are permits of its list. An interval has all permits of its times, except of the first: some of those
-- may belong to calls.

-- Returns how many permits of the list are before a time, which may be anywhere in the list.
local function count_before(c, time, now)
  local low, high = 0, call('LLEN', c.key)
  if time_at(c, -1, now) < time then return high end
  while low < high do
    local middle = floor((low + high) / 2)
    if time_at(c, middle, now) < time then low = middle + 1 else high = middle end
  end
  return low
end

-- Returns the index in the list at which an interval ends. It is found once. Returns 0 if all permits of the interval have left the list. A
-- trigger removes permits of later times. A clock that is set back makes times later again whose permits have left.
local function stop_of(c, i, now)
  if not i.stop then
    local stop = count_before(c, i.at + 1, now)
    i.stop = stop > 0 and time_at(c, stop - 1, now) == i.at and stop or 0
  end
  return i.stop
end

function sliding_window.is_last_charge(c, n, now, at) return time_at(c, -1, now) <= at end

function sliding_window.interval(c, n, now, at)
  local i = { at = at, parts = 0, limit = 0 }
  local stop = stop_of(c, i, now)
  local from = max(0, stop - n)
  if time_at(c, from, now) < at then from = count_before(c, at, now) end
  i.permits = max(0, stop - from)
  return i
end

-- If the end of i is known, that of j is near it if they touch. If that of j is known, the permit before j is the last of i if they touch.
function sliding_window.touch(c, i, j, now)
  if i.stop then
    local most = i.stop + j.permits
    j.stop = search(c, j.at + 1, now, min(most + 1, call('LLEN', c.key)), i.stop)
    return j.stop <= most and time_at(c, j.stop - 1, now) == j.at
  end
  local start = stop_of(c, j, now) - j.permits
  local latest = start > 0 and time_at(c, start - 1, now) or 0
  return latest == i.at or latest < i.at and stop_of(c, i, now) > 0
end

function sliding_window.is_last_interval(c, i, now) return time_at(c, -1, now) <= i.at end

function sliding_window.pop(c, n) call('LTRIM', c.key, '0', states.integer(-1 - n)) end

function sliding_window.reach(c, n, from) return from end

-- Looks for n permits of one time. If they had different times, one of them would move.
function sliding_window.place_in(c, i, n, now, from)
  local stop = stop_of(c, i, now)
  local k = search(c, from, now, stop, max(0, stop - i.permits))
  for _ = 1, MAX_LOOKS do
    if k + n > stop then return end
    local at = time_at(c, k + n - 1, now)
    if n == 1 or time_at(c, k, now) == at then return stop - k, at end
    k = search(c, at, now, stop, k)
  end
end

function sliding_window.without(c, i, n, now)
  local stop = stop_of(c, i, now)
  if n < stop then return { at = time_at(c, stop - n - 1, now), parts = 0, permits = i.permits - n, limit = 0 } end
end

-- Removes the n permits before an index. The ones from there on move.
local function remove_before(c, n, stop)
  for i, place in ipairs(call('LRANGE', c.key, stop, -1)) do call('LSET', c.key, stop - n + i - 1, place) end
  call('LTRIM', c.key, '0', states.integer(-1 - n))
end

-- Gives back n permits. If more than MAX_SEARCHED permits that count are earlier than the charge, and as many are later, it gives back the
-- oldest ones instead. So as many permits fit at once, and the permits of the charge stay until they leave the window. It does so, too, if it
-- gives back more than MAX_SEARCHED, and more than MAX_MOVED are later. LREM compares permits from the nearer end of the list.
function sliding_window.give_back(c, n, now, at)
  local permit, out = pack('<d', at), now - c.a
  if at <= out then return end
  local length = call('LLEN', c.key)
  if length <= FEW_TIMES then return call('LREM', c.key, -n, permit) end
  local from, to = count_before(c, at, now), count_before(c, at + 1, now)
  local later = length - to
  n = min(n, to - from)
  if n == 0 then return end
  if n > MAX_MOVED and later <= MAX_MOVED then return remove_before(c, n, to) end
  local gone = search(c, out + 1, now, length)
  if n > MAX_SEARCHED or min(later, from - gone) > MAX_SEARCHED then return sliding_window.drop(c, gone + n) end
  if later > MAX_SEARCHED then
    sliding_window.drop(c, gone)
    from = from - gone
  end
  call('LREM', c.key, later <= from and -n or n, permit)
end

function sliding_window.give(c, n, now)
  local length = call('LLEN', c.key)
  local gone, stop = search(c, now - c.a + 1, now, length), search(c, now + 1, now, length)
  n = min(n, stop - gone)
  if n <= 0 then return end
  if length - stop > MAX_PASSED then return sliding_window.drop(c, gone + n) end
  remove_before(c, n, stop)
end
