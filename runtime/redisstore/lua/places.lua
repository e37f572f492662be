-- A place is a future time for which a waiting call is charged. A free place was given up while others were after it. Its permits stay
-- charged, because the places after it were computed with that charge. A later call may take it. An interval is a series of free places:
-- each begins where the one before ends, with no call's place between them. The state is a sorted set of intervals. A member has four
-- numbers, and its score is the first of them:
--
--   at, parts  of a sliding window, the time of the last permit, and 0; of a bucket, when the bucket would be full again after the last
--              permit: at + parts/limit
--   permits
--   limit      of a bucket, at which the places were given; otherwise 0
--
-- A state keeps MAX_INTERVALS. Any further free place stays charged, and cannot be used. Algorithms that keep places in an order in which
-- they can become free have the functions of engine.placer: is_last_charge, interval, touch, is_last_interval, pop, reach, place_in and without.
local places = {}
local states = use('states')

-- Returns the interval of a member, or nil if it is damaged.
local function interval(member)
  local i, valid = { member = member }, states.valid
  if #member == 32 then i.at, i.parts, i.permits, i.limit = parse('<dddd', member) end
  return i.at and valid(i.at) and valid(i.parts) and valid(i.permits) and valid(i.limit) and i or nil
end

-- Returns an interval that ZRANGE found, or nil. If it is damaged, the free places are deleted.
local function read(c, found)
  local i = found[1] and interval(found[1])
  if i or not found[1] then return i end
  states.damage(c)
  call('DEL', c.free_key)
end

-- Returns the n-th interval, counted from 0, that ends at a time or later.
local function ending(c, at, n)
  return read(c, call('ZRANGE', c.free_key, states.integer(at), '+inf', 'BYSCORE', 'LIMIT', states.integer(n), '1'))
end

-- Returns the last interval that ends before a time.
local function ending_before(c, at)
  return read(c, call('ZRANGE', c.free_key, '(' .. states.integer(at), '-inf', 'BYSCORE', 'REV', 'LIMIT', '0', '1'))
end

local function remove(c, i) call('ZREM', c.free_key, i.member) end

-- Adds an interval. Its key expires with the state.
local function add_interval(c, now, i)
  if call('ZCARD', c.free_key) >= MAX_INTERVALS then return end
  call('ZADD', c.free_key, states.integer(i.at), pack('<dddd', i.at, i.parts, i.permits, i.limit))
  states.expire(c.free_key, c.is.full(c, now))
end

-- Tells the last place and the permits of each interval, or none if one is damaged.
function places.each(c, now, tell)
  local list = call('ZRANGE', c.free_key, '0', '-1')
  for k, member in ipairs(list) do
    list[k] = interval(member)
    if not list[k] then return end
  end
  for _, i in ipairs(list) do
    local at = c.burst and i.at - use('bucket').mul_div(c.burst, c.a, i.limit) or i.at
    if at > now then tell(at, i.permits) end
  end
end

-- Adds the interval of a place that became free, and joins it with its neighbours. No two intervals have the same time, because a sorted
-- set would not keep their order.
local function insert(c, now, i)
  if i.permits == 0 then return end
  call('ZREMRANGEBYSCORE', c.free_key, '-inf', states.integer(now))
  local before, after = ending_before(c, i.at), ending(c, i.at, 0)
  if after and c.is.touch(c, i, after, now) then
    remove(c, after)
    after.permits = after.permits + i.permits
    i = after
  elseif after and after.at == i.at then
    return
  end
  if before and c.is.touch(c, before, i, now) then
    remove(c, before)
    i.permits = i.permits + before.permits
  end
  add_interval(c, now, i)
end

-- Returns the first place for n permits of a claim, at a time or later: when it is, its interval, and how many permits the interval has
-- from there on. Returns nil if there is none.
local function find(c, n, now, from)
  local least = c.is.reach(c, n, from)
  for look = 0, MAX_LOOKS - 1 do
    local i = ending(c, least, look)
    if not i then return end
    local left, at = c.is.place_in(c, i, n, now, from)
    if left then return at, i, left end
  end
end

-- Takes n permits out of an interval, which has left permits from there on. The places before and after them stay free as two intervals. The
-- places before them stay charged instead if their interval would not be the only one of its time, or would not be in order.
local function cut(c, now, i, left, n)
  remove(c, i)
  local before = left < i.permits and c.is.without(c, i, left, now)
  i.permits = left - n
  if i.permits > 0 then add_interval(c, now, i) end
  if not before or before.at <= now or before.at >= i.at then return end
  local earlier = ending_before(c, i.at)
  if not earlier or earlier.at < before.at then add_interval(c, now, before) end
end

-- Takes the free place of a claim at a time, and reports whether there is one. The rest of a larger place stays free. If the claim is
-- charged for another place, within an interval, that divides the interval.
function places.take(c, now, at)
  if not c.has_free then return false end
  local first, i, left = find(c, c.cost, now, at)
  if first == at then
    cut(c, now, i, left, c.cost)
    return true
  end
  first, i, left = find(c, 1, now, at)
  if first then cut(c, now, i, left, 0) end
  return false
end

-- Returns the first time, not before from, at which a rule has a free place for a claim, or admits it after all its places; and whether
-- it is that of a free place.
local function next_place(c, now, from)
  local free = c.has_free and find(c, c.cost, now, from)
  if free == from then return free, true end
  local after = c.is.earliest(c, c.cost, now, from)
  if c.is.reserves(c, now, after) and not (free and free <= after) then return after, false end
  return free, true
end

-- Notes which rules have free places, and reports whether one that the call has to wait for has. The call may wait, so each of its rules
-- in enforce mode has a key of free places.
local function note_free(claims, now)
  local any = false
  for _, c in ipairs(claims.enforced) do
    c.has_free = c.is.place_in and ending(c, c.is.reach(c, 1, now + 1), 0) ~= nil
    any = any or c.has_free and c.wait > 0 and c.earliest > now
  end
  return any
end

-- Returns the time of the first free place that a call can use, or nil. Every other rule must have a free place at that time, too, or
-- admit the call then, after all its own places.
function places.free_place(claims, now)
  if not note_free(claims, now) then return end
  local at = now + 1
  for _ = 1, MAX_LOOKS do
    local from, usable = at, false
    for _, c in ipairs(claims.enforced) do
      local next, free = next_place(c, now, at)
      if not next or c.blocked_until or c.earliest > now and next > now + c.wait then return end
      at, usable = next, usable or free and c.earliest > now
    end
    if at == from then return usable and at or nil end
  end
end

-- Gives back n permits of a charge for a future time. If other calls have later places, these permits become a free place. Otherwise they
-- are given back. If an interval of free places is the latest charge then, it is given back as well.
function places.give_back(c, n, now)
  if not c.is.is_last_charge(c, n, now, c.wait) then return insert(c, now, c.is.interval(c, n, now, c.wait)) end
  c.is.give_back(c, n, now, c.wait)
  local latest = read(c, call('ZRANGE', c.free_key, '-1', '-1'))
  if not latest or not c.is.is_last_interval(c, latest, now) then return end
  remove(c, latest)
  local left = c.is.place_in(c, latest, 1, now, now + 1)
  if left then c.is.pop(c, left, now) end
end
