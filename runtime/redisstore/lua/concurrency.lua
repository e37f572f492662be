-- Counts the permits of calls that run. A call gives its permits back when it ends. Those of a call whose process died end by themselves.
-- Nobody knows in advance when permits come back. a is how long permits last, unless they are renewed. text is the number that the caller chose
-- for its call, in 16 hexadecimal digits.
--
-- The state is a string: LAYOUT, and an entry for each call: when its permits end, how many they are, and the call's number.
local states = use('states')
local concurrency = { has_text = true, counts_running = true, reserves = states.at_once }
local max, min = math.max, math.min

local ENTRY = 32 -- bytes
local ASK_EVERY = 50000 -- how long a call that waits for others to end sleeps before it asks again

-- Loads the state: the entries, the permits that have not ended, whether others have, and when the last ones end.
local function load(c, now)
  local state = call('GET', c.key)
  c.state, c.used, c.ended, c.last = state and states.current(c, state, ENTRY) or HEAD, 0, false, 0
  for from = 2, #c.state, ENTRY do
    local stop, permits = parse('<dd', c.state, from)
    if not (states.valid(stop) and states.valid(permits)) or stop > now + HORIZON then
      states.damage(c)
      c.state, c.used, c.last = HEAD, 0, 0
      return
    end
    if stop > now then c.used = c.used + permits else c.ended = true end
    c.last = max(c.last, stop)
  end
end

function concurrency.check(c, now)
  load(c, now)
  return concurrency.earliest(c, c.cost, now, now)
end

-- Returns when to ask again if the permits do not fit: after ASK_EVERY, or when the wait of the call ends if that is sooner.
function concurrency.earliest(c, n, now, from)
  if c.used + n <= c.limit then return from end
  return max(from, now + (c.wait > 0 and min(ASK_EVERY, c.wait) or ASK_EVERY))
end

-- The room is below 0 if more permits are taken than the limit: the limit was lowered, or permits were renewed after the store had lost them.
function concurrency.room(c) return c.limit - c.used end

-- Returns now, as nobody knows when the permits come back.
function concurrency.full(c, now) return now end

-- Returns where the entry of the claim's call begins in the state, if there is one.
local function own(c)
  local at = string.find(c.state, c.text, 1, true)
  while at and (at - 2) % ENTRY ~= 16 do at = string.find(c.state, c.text, at + 1, true) end
  return at and at - 16
end

-- Removes the entry of the claim's call, and reports whether there was one. It also removes entries whose permits have ended.
local function others(c, now)
  local from = own(c)
  if from then
    local stop, permits = parse('<dd', c.state, from)
    if stop > now then c.used = c.used - permits end
    c.state = string.sub(c.state, 1, from - 1) .. string.sub(c.state, from + ENTRY)
  end
  if c.ended then
    local list = { HEAD }
    for i = 2, #c.state, ENTRY do
      if parse('<d', c.state, i) > now then table.insert(list, string.sub(c.state, i, i + ENTRY - 1)) end
    end
    c.state, c.ended = table.concat(list), false
  end
  return from
end

-- Replaces the entry of the claim's call, if it has one. So it also renews permits.
function concurrency.commit(c, n, now)
  others(c, now)
  c.state, c.used, c.last = c.state .. pack('<dd', now + c.a, n) .. c.text, c.used + n, max(c.last, now + c.a)
  states.set(c.key, c.state, c.last)
end

-- Gives all permits of the claim's call back.
function concurrency.give_back(c, n, now)
  if not others(c, now) then return end
  if c.state == HEAD then
    call('DEL', c.key)
  else
    states.set(c.key, c.state, c.last)
  end
end
