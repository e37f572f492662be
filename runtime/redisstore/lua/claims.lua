-- A call as it is sent: one argument, which is a byte of flags and the claims, one after the other. Each claim is kind, mode, has, limit,
-- cost, a, b, wait, block and text: see common.lua. Its keys are those of its state, of its free places if it has any, and of its block if
-- it has one. A call that takes permits up to a cost, or ahead, has a second argument, its amount: the most permits that it takes; and for
-- how long, if it takes them ahead.
--
-- Here a call is the list of its claims, with these properties:
--
--   peek, report, up_to, refused, adjusts, rollback, leases
--                what to do: see engine.Call
--   arguments    how many arguments it has
--   keys         how many keys the claims have
--   enforced     the claims whose rule enforces its limit
--   plain        whether decide_plain can decide the call: each rule enforces its limit, without waits and blocks, on a cost of 1, and no
--                more than a report is asked for. Most calls are plain
--   of_one_call  whether no other call sends the same, so that it is not kept

local MAX_KNOWN = 1000

-- Calls by their first argument, which is the same for all subjects, and how many claims they have. A library parses such an argument once.
-- Callers may send more than fit, of many costs for example. Then all are forgotten, and parsed when they come again.
local known, size = {}, 0

-- Adds the claim that begins at text[from] to a call, and returns where the next one begins.
local function add_claim(claims, text, from)
  local kind, mode, has, limit, cost, p, q, wait, block, words, behind = parse('<BBBdddddds', text, from)
  local is = use(KINDS[kind])
  local c = {
    kind = kind, mode = mode, has = has, number = #claims + 1, limit = limit, cost = cost, a = p, b = q, wait = wait,
    block = block, text = words, is = is, check = is.check, load = is.load, commit = is.commit,
  }
  if is.prepare then is.prepare(c) end
  claims[c.number] = c
  claims.keys = claims.keys + 1 + has % 2 + floor(has / 2)
  claims.plain = claims.plain and mode == ENFORCE and has == 0 and cost == 1
  claims.of_one_call = claims.of_one_call or is.of_one_call
  if mode == ENFORCE then table.insert(claims.enforced, c) end
  return behind
end

-- Reads the first argument of a call. An adjustment holds the time of a charge, so no other call sends the same.
local function new_call(text)
  local flags, from = byte(text), 2
  local function has(flag) return flags % (2 * flag) >= flag end
  local claims = { keys = 0, enforced = {}, plain = flags == 0 or flags == 2, of_one_call = has(16) }
  while from <= #text do from = add_claim(claims, text, from) end
  -- These come last, since Lua keeps the first claims as an array only while the table has few names.
  claims.peek, claims.report, claims.up_to, claims.refused = has(1), has(2) or has(1), has(4), has(8)
  claims.adjusts, claims.rollback, claims.leases = has(16), has(32), has(64)
  claims.arguments = (claims.up_to or claims.leases) and 2 or 1
  if not claims.of_one_call then
    if size + #claims > MAX_KNOWN then known, size = {}, 0 end
    known[text], size = claims, size + #claims
  end
  return claims
end

-- Tells a claim its further keys, which begin at keys[k], and returns the index behind them.
local function set_keys(c, keys, k)
  if c.has % 2 >= FREE then c.free_key, k = keys[k], k + 1 end
  if c.has >= BLOCK then c.block_key, k = keys[k], k + 1 end
  return k
end
