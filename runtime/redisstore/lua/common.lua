-- What the algorithms share. Every time is in whole microseconds, and every number of a state is a little-endian double that
-- holds an integer. A claim is a table:
--
--   kind, mode        numbers, as in package engine
--   limit, cost       permits
--   a, b, text        terms of the algorithm; see its file
--   wait              how long the rule may delay the call; when giving back, the time of the charge
--   key               the key of the state
--   free              the key of its free places, if the call may wait or gives back
--   blocked, block    the key of its block, and how long a refusal blocks, if the rule has a block
--
-- An algorithm is a table of functions with the names of engine.State. Its check loads the state into the claim, and returns the
-- earliest time and whether the caller must tell the calendar window of now. So the types of all keys of a call are checked before its
-- first write.

local SLIDING, FIXED, CALENDAR, BUCKET, PREPAID = 1, 2, 3, 4, 5
local DISTINCT, DISTINCT_CALENDAR = 8, 9
local ENFORCE, SHADOW, TRIGGER = 0, 1, 2
local MOST_USED = 2 ^ 51 -- permits beyond are not counted; only triggers, which admit any cost, come so far

-- Names that a library cannot look up while it loads. The first run binds them.
local call, byte, format, pack, parse, floor, ceil, max, min

local function bind()
  call, byte, format, pack, parse = redis.call, string.byte, string.format, struct.pack, struct.unpack
  floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
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

-- Returns what a call asks for, from a sum of flags.
local function operation(flags)
  local function has(flag) return flags % (2 * flag) >= flag end
  return {
    peek = has(1), report = has(2) or has(1), up_to = has(4), refused = has(8), adjust = has(16), rollback = has(32), lease = has(64),
  }
end

-- Returns n as text that Redis reads as an integer.
local function integer(n) return format('%.0f', n) end

local function expire(key, at) call('PEXPIREAT', key, integer(ceil(at / 1000))) end

local function set(key, state, expiry) call('SET', key, state, 'PXAT', integer(ceil(expiry / 1000))) end

-- Damaged numbers, which are not finite or negative, count as no state at all: kept on, they would let everybody pass.
local function valid(x, y, z) return x >= 0 and y >= 0 and z >= 0 and x + y + z < 2 ^ 53 end

local function always() return true end

-- A state that keeps no places to come.
local function at_once(c, now, at) return at <= now end
