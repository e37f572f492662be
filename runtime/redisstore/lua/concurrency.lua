-- Counts the permits of calls that run. A call gives its permits back when it ends. Those of a call whose process died end by themselves.
-- Nobody knows in advance when permits come back. a is how long permits last, unless they are renewed. text is the number that the caller chose
-- for its call, in 16 hexadecimal digits. An adjustment may have the numbers of several calls there, each of which has as many permits.
--
-- The state is a string: LAYOUT, and an entry for each call: when its permits end, how many they are, and the call's number. The calls of a
-- run on one key share c.running, what the first of them read:
--
--   text   LAYOUT, and the entries whose permits have not ended
--   used   their permits
--   last   when the last ones end
--   ended  whether the key has others, which go at the next write
local states = use('states')
local concurrency = { has_text = true, counts_running = true, reserves = states.at_once }
local max, min, rep, sub = math.max, math.min, string.rep, string.sub

local ENTRY, NUMBER = 32, 16 -- bytes of an entry, and of a call's number
local AT_ONCE = 250 -- entries that are parsed at once; Lua's stack holds only a few thousand values
local ASK_EVERY = 50000 -- how long a call that waits for others to end sleeps before it asks again

-- Returns a state without the entries that begin at some indexes, which ascend.
local function without(text, entries)
  local list, from = {}, 1
  for _, entry in ipairs(entries) do
    if entry > from then table.insert(list, sub(text, from, entry - 1)) end
    from = entry + ENTRY
  end
  table.insert(list, sub(text, from))
  return table.concat(list)
end

-- Reads a state. Returns nil if it is damaged.
local function read(text, now)
  local used, last, ended, latest = 0, 0, {}, now + HORIZON
  for from = 2, #text, ENTRY * AT_ONCE do
    local count = min(AT_ONCE, (#text + 1 - from) / ENTRY)
    local list = { parse('<' .. rep('dddd', count), text, from) } -- the number is read like two doubles, which is faster than to skip it
    for i = 1, 4 * count, 4 do
      local stop, permits = list[i], list[i + 1]
      if not (stop >= 0 and stop % 1 == 0 and stop <= latest and states.valid(permits)) then return end
      if stop > now then
        used, last = used + permits, max(last, stop)
      else
        table.insert(ended, from + (i - 1) / 4 * ENTRY)
      end
    end
  end
  return { text = ended[1] and without(text, ended) or text, used = used, last = last, ended = ended[1] ~= nil }
end

function concurrency.check(c, now)
  c.running = shared[c.key]
  if not c.running then
    local state = call('GET', c.key)
    state = state and states.current(c, state, ENTRY) or HEAD
    c.running = read(state, now)
    if not c.running then
      states.damage(c)
      c.running = read(HEAD, now)
    end
    shared[c.key] = c.running
  end
  return concurrency.earliest(c, c.cost, now, now)
end

-- Returns when to ask again if the permits do not fit: after ASK_EVERY, or when the wait of the call ends if that is sooner.
function concurrency.earliest(c, n, now, from)
  if c.running.used + n <= c.limit then return from end
  return max(from, now + (c.wait > 0 and min(ASK_EVERY, c.wait) or ASK_EVERY))
end

-- The room is below 0 if more permits are taken than the limit: the limit was lowered, or permits were renewed after the store had lost them.
function concurrency.room(c) return c.limit - c.running.used end

-- Returns now, as nobody knows when the permits come back.
function concurrency.full(c, now) return now end

-- Returns where the entries of the claim's calls begin in the state.
local function own(c)
  local text, found = c.running.text, {}
  if #c.text == NUMBER then
    local at = string.find(text, c.text, 1, true)
    while at and (at - 2) % ENTRY ~= 16 do at = string.find(text, c.text, at + 1, true) end
    return { at and at - 16 }
  end
  local numbers = {}
  for i = 1, #c.text, NUMBER do numbers[sub(c.text, i, i + NUMBER - 1)] = true end
  for from = 2, #text, ENTRY do
    if numbers[sub(text, from + 16, from + 31)] then table.insert(found, from) end
  end
  return found
end

-- Removes the entries of the claim's calls, and reports whether that changes the key.
local function remove(c)
  local running, entries = c.running, own(c)
  for _, entry in ipairs(entries) do running.used = running.used - parse('<d', running.text, entry + 8) end
  if entries[1] then running.text = without(running.text, entries) end
  return entries[1] or running.ended
end

local function write(c)
  local running = c.running
  running.ended = false
  if running.text == HEAD then return call('DEL', c.key) end
  states.set(c.key, running.text, running.last)
end

-- Replaces the entries of the claim's calls, if they have any. So it also renews permits.
function concurrency.commit(c, n, now)
  remove(c)
  local running, permits = c.running, pack('<dd', now + c.a, n)
  local list = { running.text }
  for i = 1, #c.text, NUMBER do table.insert(list, permits .. sub(c.text, i, i + NUMBER - 1)) end
  running.text, running.used, running.last = table.concat(list), running.used + n * (#list - 1), max(running.last, now + c.a)
  write(c)
end

-- Gives all permits of the claim's calls back.
function concurrency.give_back(c)
  if remove(c) then write(c) end
end
