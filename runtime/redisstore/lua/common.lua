-- Everything that the algorithms share. All times are in whole microseconds. All numbers of a state are integers, stored as little-endian
-- doubles. A claim is a table:
--
--   number            of the claim in its call
--   kind, mode        numbers, as in package engine. Kinds have names here, such as TOKEN_BUCKET
--   limit, cost       permits
--   a, b, text        values that the algorithm needs; see its file
--   wait              how long the rule may delay the call; in an adjustment, the time of the charge
--   has               which keys it has besides its state: a sum of FREE, BLOCK and PAUSE
--   key               the key of the state
--   free_key          the key of its free places, if the call may wait, or if it adjusts a charge that may be a place
--   block_key         the key of the subject's block, if the rule has blocks; see block.lua
--   pause_key         the key of the subject's pause, if the rule has pauses; see pause.lua
--   block, block_most how long a refusal blocks the subject, and up to how long that doubles, or 0
--
-- An algorithm is a table of functions with the names of the methods of engine.State. Besides them it has check, and it may have prepare,
-- load and ends. It may lack charge and give.
--
--   prepare           computes what is the same for all subjects of a rule
--   check             loads the state into the claim. It returns the earliest time, and whether the caller sent the wrong calendar window,
--                     so that it must send the call again with the window that holds now
--   load              loads what only a charge needs
--   charge            charges permits even beyond the limit. If it is missing, commit does so; rules that count members are never settled
--   give              gives back permits, the newest ones that are no places. If it is missing, give_back does so
--   ends              returns the end of the present window, at which a lease ends at the latest. If it is missing, the permits of a lease
--                     are recorded at the lease's end
--
-- An algorithm may have these properties:
--
--   has_text          each of its claims has a text of its own, which is sent in the second argument. See claims.lua
--   counts_running    a refusal says how many permits are left
--
-- All claims of a call are checked and loaded before the first write. So if a key has another type or a later layout, the whole call fails
-- and charges nothing.
--
-- Layouts: a state that is a string begins with the byte LAYOUT. Older programs wrote the numbers without that byte, so the length of their
-- states is a multiple of 8. The next write of such a state adds the byte. A later layout has a greater first byte, below LAYOUTS, and a
-- length that is not a multiple of 8. A list has no such byte: its layout is the length of its elements, which is 8. A call that finds a
-- later layout fails.
--
-- Damage: a state with an invalid length, or with numbers that no program writes, counts as none.

local ENFORCE, SHADOW, TRIGGER = 0, 1, 2
local FREE, BLOCK, PAUSE = 1, 2, 4 -- which keys a claim has besides its state, as a sum
local MOST_USED = 2 ^ 51 -- a count stops there; only a trigger, which admits any cost, gets that far
local LAYOUT, LAYOUTS = 1, 32
local MAX_LOOKS = 16 -- in how many intervals a call looks for a place, in how many groups of permits of each, and how often for all rules
local HEAD = '\1' -- LAYOUT as a byte
local DAY = 24 * 3600 * 1000000
local HORIZON = 3661 * DAY -- a call waits for at most 3660 days, and the clock may be set back by a day

-- A library cannot look these up while it loads, so the first run does.
local call, byte, char, format, pack, parse, floor, ceil, max, min
local whole -- how format writes an integer

local function bind()
  call, byte, char, format, pack, parse = redis.call, string.byte, string.char, string.format, struct.pack, struct.unpack
  floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
  whole = format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f' -- %d is faster, but has only 32 bits on some servers
end

local define -- runs the file of a module, and returns the table that the file defines
local used = {}

-- Returns the table that a file defines. A library runs the file only once.
local function use(name)
  local module = used[name]
  if not module then
    module = define(name)
    used[name] = module
  end
  return module
end

-- Reports whether a sum of powers of two has one of them.
local function includes(sum, power) return sum % (2 * power) >= power end

-- Returns n as text that Redis reads as an integer.
local function integer(n) return format(whole, n) end

-- Makes a key expire a second after its state ceases to count. A run uses the time at which it began, but the server's own time goes on,
-- even while its process is stopped. If the expiry has passed by then, Redis 7.0 deletes the key at once. The extra second prevents that,
-- unless the run takes longer. By then the callers have given up.
local function expire(key, at) call('PEXPIREAT', key, format(whole, ceil(at / 1000) + 1000)) end

local function set(key, state, expiry) call('SET', key, state, 'PXAT', format(whole, expiry / 1000 + 1)) end

-- Reports whether a number is a whole number from 0 to 2^53 - 1. NaN and infinity are not.
local function valid(x) return x >= 0 and x % 1 == 0 and x < 2 ^ 53 end

local notes -- the last entries of the reply, if there are any: see decide.lua
local changed -- the claims whose states were converted to another limit, if there are any

local function add_note(entry) notes = (notes or '') .. entry end

-- Notes that the state of a claim is damaged.
local function damage(c) add_note(char(c.number, 4)) end

-- Notes the time at which a charge is recorded.
local function record(c, at) add_note(pack('<BBd', c.number, 5, at)) end

local function fail_later_layout(layout, known) error('LAYOUT ' .. layout .. ' ' .. known, 0) end

-- Returns a state with a layout up to the newest one, which is LAYOUT if it is missing: the byte, and then groups of the given number of
-- bytes. Returns nothing if the state is damaged.
local function current(c, state, group, newest)
  local length, layout = #state, byte(state)
  newest = newest or LAYOUT
  if length % group == 1 and length > 1 and layout >= LAYOUT and layout <= newest then return state end
  if length % group == 0 and length > 0 then return HEAD .. state end
  if length % 8 > 0 and layout > newest and layout < LAYOUTS then fail_later_layout(layout, newest) end
  damage(c)
end

-- Returns the groups of numbers in a state, each as a table with the given names. names.time names the number that is the group's time; the
-- groups are in the order of these times. Groups whose time has come are left out. A state with a time after last is damaged. names.layout
-- is the newest layout, if it is not LAYOUT.
local function read_groups(c, state, names, now, last)
  local list, size = {}, 8 * #names
  state = state and current(c, state, size, names.layout) or ''
  for from = 2, #state, size do
    local group, sound = {}, true
    for i, name in ipairs(names) do
      group[name] = parse('<d', state, from + 8 * (i - 1))
      sound = sound and valid(group[name])
    end
    local time = group[names.time]
    if not sound or time > last then
      damage(c)
      return {}
    end
    if time > now then table.insert(list, group) end
  end
  return list
end

-- Writes such groups to a key, which expires after the last group's time. If there are no groups, it deletes the key.
local function write_groups(key, list, names)
  if not list[1] then return call('DEL', key) end
  local state = { HEAD }
  for _, group in ipairs(list) do
    for _, name in ipairs(names) do table.insert(state, pack('<d', group[name])) end
  end
  set(key, table.concat(state), list[#list][names.time])
end

-- The function reserves of states that keep no places.
local function at_once(c, now, at) return at <= now end
