-- Counts the permits of calls that run. A call gives its permits back when it ends. Those of a call whose process died end by themselves.
-- Nobody knows in advance when permits come back. a is how long permits last, unless they are renewed. text is the number that the caller chose
-- for its call, in 16 hexadecimal digits. An adjustment may have the numbers of several calls there, each of which has as many permits.
--
-- The state is a string: LAYOUT, and an entry for each call: when its permits end, how many they are, and the call's number. An entry that
-- ends at 0 is free for another call. Redis hashes a string that it gives to Lua, which takes a while if the string is long. So a run reads
-- the state of a key once, and writes single entries. Its calls share c.running:
--
--   at, permits  where the entry of each call begins, and its permits
--   free         where free entries begin
--   used         the permits of all calls
--   last         when the last ones end
--   size         the size of the state
--   unsaved      the state, if the key has another one: a new state, or one without entries that have ended
--   ended        whether the key has such entries
local states = use('states')
local concurrency = { counts_running = true, reserves = states.at_once }
local max, min, rep, sub = math.max, math.min, string.rep, string.sub

local ENTRY, NUMBER = 32, 16 -- bytes of an entry, and of a call's number
local AT_ONCE = 250 -- entries that are parsed at once; Lua's stack holds only a few thousand values
local free_entry = rep('\0', 16) -- its number stays

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
  local at, permits, free, used, last, ended = {}, {}, {}, 0, 0, false
  for first = 2, #text, ENTRY * AT_ONCE do
    local count = min(AT_ONCE, (#text + 1 - first) / ENTRY)
    local list = { parse('<' .. rep('ddc16', count), text, first) }
    for i = 1, 3 * count, 3 do
      local entry, stop, n, number = first + (i - 1) / 3 * ENTRY, list[i], list[i + 1], list[i + 2]
      if not (stop >= 0 and stop % 1 == 0 and stop <= now + HORIZON and n >= 0 and n % 1 == 0 and n < 2 ^ 53) then return end
      if stop > now then
        at[number], permits[number], used, last = entry, n, used + n, max(last, stop)
      else
        table.insert(free, entry)
        ended = ended or stop > 0
      end
    end
  end
  if ended or #free > 16 and 2 * #free * ENTRY > #text then
    local running = read(without(text, free), now)
    running.ended = ended
    return running
  end
  return { at = at, permits = permits, free = free, used = used, last = last, size = #text, unsaved = text }
end

function concurrency.check(c, now)
  c.running = shared[c.key]
  if not c.running then
    local state = call('GET', c.key)
    c.running = read(state and states.current(c, state, ENTRY) or HEAD, now)
    if not c.running then
      states.damage(c)
      c.running = read(HEAD, now)
    end
    if c.running.unsaved == state then c.running.unsaved = nil end
    shared[c.key] = c.running
  end
  return concurrency.earliest(c, c.cost, now, now)
end

-- Returns when to ask again if the permits do not fit: after ASK_EVERY, or when the wait of the call ends if that is sooner.
function concurrency.earliest(c, n, now, from)
  if c.running.used + n <= c.limit then return from end
  return max(from, now + (c.wait > 0 and min(ASK_EVERY, c.wait) or ASK_EVERY))
end

function concurrency.room(c) return c.limit - c.running.used end

-- Returns now, as nobody knows when the permits come back.
function concurrency.full(c, now) return now end

-- Returns now for the same reason.
function concurrency.more(c, room, now) return now end

-- Returns the state, or '' if it is damaged.
function concurrency.calls(c)
  return c.running.size > 1 and (c.running.unsaved or call('GET', c.key)) or ''
end

-- Writes the state if the key has another one. Reports whether it did, so that the key expires after the last permits.
local function save(c)
  local running = c.running
  local unsaved = running.unsaved
  if unsaved then states.set(c.key, unsaved, running.last) end
  running.unsaved, running.ended = nil, nil
  return unsaved
end

local function write(c, entry, text) call('SETRANGE', c.key, states.integer(entry - 1), text) end

-- Replaces the entries of the claim's calls, if they have any. So it also renews permits.
function concurrency.commit(c, n, now)
  local running, stop = c.running, now + c.a
  running.last = max(running.last, stop)
  local saved = save(c)
  for i = 1, #c.text, NUMBER do
    local number = sub(c.text, i, i + NUMBER - 1)
    local entry = running.at[number] or table.remove(running.free)
    if not entry then
      entry = running.size + 1
      running.size = running.size + ENTRY
    end
    running.used = running.used + n - (running.permits[number] or 0)
    running.at[number], running.permits[number] = entry, n
    write(c, entry, pack('<dd', stop, n) .. number)
  end
  if not saved then states.expire(c.key, running.last) end
end

-- Gives all permits of the claim's calls back.
function concurrency.give_back(c)
  local running, entries = c.running, {}
  for i = 1, #c.text, NUMBER do
    local number = sub(c.text, i, i + NUMBER - 1)
    local entry = running.at[number]
    if entry then
      running.used = running.used - running.permits[number]
      running.at[number], running.permits[number] = nil, nil
      table.insert(entries, entry)
    end
  end
  if not (entries[1] or running.ended) then return end
  if running.used == 0 then
    shared[c.key] = nil
    return call('DEL', c.key)
  end
  save(c)
  for _, entry in ipairs(entries) do
    write(c, entry, free_entry)
    table.insert(running.free, entry)
  end
end
