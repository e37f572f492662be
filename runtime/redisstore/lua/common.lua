-- What the algorithms share. Every time is in whole microseconds, and every number of a state is a little-endian double that
-- holds an integer. A claim is a table:
--
--   number            of the claim in its call
--   kind, mode        numbers, as in package engine. Kinds have names here, such as TOKEN_BUCKET
--   limit, cost       permits
--   a, b, text        terms of the algorithm; see its file
--   wait              how long the rule may delay the call; when giving back, the time of the charge
--   has               which keys it has besides its state: a sum of FREE and BLOCK
--   key               the key of the state
--   free_key          the key of its free places, if the call may wait or gives back what may be a place
--   block_key, block  the key of its block, and how long a refusal blocks, if the rule has a block
--   blocked_until     when the block ends that refuses the claim, or false
--
-- An algorithm is a table of functions with the names of engine.State, and these:
--
--   prepare           computes what is the same for all subjects of a rule; it may be missing
--   check             loads the state into the claim. It returns the earliest time, and whether the caller must tell the calendar
--                     window of now.
--   load              loads what only a charge needs; it may be missing
--   charge            if it is missing, commit charges what is beyond the limit as well; members are never settled
--   ends              returns the end of the present window, which ends a lease; if it is missing, a lease is charged as of its end
--
-- An algorithm may have the property of_one_call: no other call sends the same claim.
--
-- All claims of a call are checked and loaded before its first write. So a key of another type, or of a later layout, fails the call as
-- a whole.
--
-- Layouts: a state that is a string begins with the byte LAYOUT. Programs before that byte wrote the numbers alone, so the length of
-- their states is a multiple of 8; the next write of such a state adds the byte. A later layout has another first byte, below LAYOUTS,
-- and a length that is no multiple of 8. The layout of a list is the length of its elements, which is 8. A call that meets a later
-- layout fails.
--
-- Damage: a state of an invalid length, or with numbers that no program wrote, counts as none.

local ENFORCE, SHADOW, TRIGGER = 0, 1, 2
local FREE, BLOCK = 1, 2 -- which keys a claim has besides its state, as a sum
local MOST_USED = 2 ^ 51 -- permits beyond are not counted; only triggers, which admit any cost, come so far
local LAYOUT, LAYOUTS = 1, 32
local HEAD = '\1' -- LAYOUT as it stands in a state
local DAY = 24 * 3600 * 1000000
local HORIZON = 3661 * DAY -- a call waits for 3660 days at most, and the clock may go back by a day

-- Names that a library cannot look up while it loads. The first run binds them.
local call, byte, char, format, pack, parse, floor, ceil, max, min
local whole -- how format writes an integer

local function bind()
  call, byte, char, format, pack, parse = redis.call, string.byte, string.char, string.format, struct.pack, struct.unpack
  floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
  whole = format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f' -- the first one is faster, but has 32 bits on some servers
end

local modules, used = {}, {}

-- Returns the table that a file makes. A library makes it once.
local function use(name)
  local module = used[name]
  if not module then
    module = modules[name]()
    used[name] = module
  end
  return module
end

-- Returns n as text that Redis reads as an integer.
local function integer(n) return format(whole, n) end

-- Lets a key expire a second after its state has ceased to count. A run counts by the time at which it began, but Redis 7.0 deletes a key
-- at once whose expiry is before its own time, which goes on if the server is stopped meanwhile. By then the callers have given up.
local function expire(key, at) call('PEXPIREAT', key, format(whole, ceil(at / 1000) + 1000)) end

local function set(key, state, expiry) call('SET', key, state, 'PXAT', format(whole, expiry / 1000 + 1)) end

-- Reports whether a number is whole, and not negative. What is not a number is not whole, nor is infinity.
local function valid(x) return x >= 0 and x % 1 == 0 and x < 2 ^ 53 end

local notes -- entries that the reply ends with, if there are any: see decide.lua

local function add_note(entry) notes = (notes or '') .. entry end

-- Notes that the state of a claim is damaged.
local function damage(c) add_note(char(c.number, 4)) end

-- Notes the time that a charge is recorded at.
local function record(c, at) add_note(pack('<BBd', c.number, 5, at)) end

local function fail_later_layout(layout, known) error('LAYOUT ' .. layout .. ' ' .. known, 0) end

-- Returns a state as LAYOUT and groups of so many bytes, or nothing if it is damaged.
local function current(c, state, group)
  local length, layout = #state, byte(state)
  if layout == LAYOUT and length % group == 1 and length > 1 then return state end
  if length % group == 0 and length > 0 then return HEAD .. state end
  if length % 8 > 0 and layout > LAYOUT and layout < LAYOUTS then fail_later_layout(layout, LAYOUT) end
  damage(c)
end

-- Returns the groups of numbers in a state, each as a table with the given names. They are in the order of a time: the number named
-- names.time. It leaves out groups whose time has come. No program writes a time beyond last.
local function read_groups(c, state, names, now, last)
  local list, size = {}, 8 * #names
  state = state and current(c, state, size) or ''
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

-- Writes such groups to a key, which expires after the last one, or deletes the key if there are none.
local function write_groups(key, list, names)
  if not list[1] then return call('DEL', key) end
  local state = HEAD
  for _, group in ipairs(list) do
    for _, name in ipairs(names) do state = state .. pack('<d', group[name]) end
  end
  set(key, state, list[#list][names.time])
end

local function always() return true end

-- A state that keeps no places to come.
local function at_once(c, now, at) return at <= now end
