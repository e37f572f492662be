-- The claims of a call, as they are sent: one argument holds all of them, one after the other. Each claim is kind, mode, has, limit, cost,
-- a, b, wait, block and text: see common.lua. Its keys are those of its state, of its free places if it has any, and of its block if it has
-- one.
--
-- The list of the claims of a call has these properties:
--
--   keys         how many keys the claims have
--   to_load      the claims whose algorithm has a function load
--   plain        whether decide.plain can decide the call
--   of_one_call  whether a claim is of_one_call: see common.lua

local MAX_KNOWN = 1000

-- Lists of claims by the text they were sent as, which is the same for all subjects, and how many claims they have. A library parses such a
-- text once.
local known, size = {}, 0

-- Adds the claim that begins at text[from] to a list, and returns where the next one begins.
local function add_claim(claims, text, from)
  local kind, mode, has, limit, cost, p, q, wait, block, words, behind = parse('<BBBdddddds', text, from)
  local is = use(KINDS[kind])
  local c = {
    kind = kind, mode = mode, has = has, number = #claims + 1, limit = limit, cost = cost, a = p, b = q, wait = wait, block = block,
    text = words, is = is, check = is.check, load = is.load, commit = is.commit,
  }
  if is.prepare then is.prepare(c) end
  claims[c.number] = c
  claims.keys = claims.keys + 1 + has % 2 + floor(has / 2)
  claims.plain = claims.plain and mode == ENFORCE and has == 0 and cost == 1 and not is.has_price
  claims.of_one_call = claims.of_one_call or is.of_one_call
  if c.load then table.insert(claims.to_load, c) end
  return behind
end

-- Reads the claims of a call. An adjustment holds the time of a charge, so no other call sends the same.
local function new_claims(text, adjusts)
  local claims, from = { plain = true, keys = 0, to_load = {} }, 1
  while from <= #text do from = add_claim(claims, text, from) end
  if not claims.of_one_call and not adjusts then
    if size + #claims > MAX_KNOWN then known, size = {}, 0 end
    known[text], size = claims, size + #claims
  end
  return claims
end

-- Tells a claim its further keys, which begin at keys[k], and returns the index behind them.
local function set_keys(c, keys, k)
  if c.has % 2 >= FREE then
    c.free_key, k = keys[k], k + 1
  end
  if c.has >= BLOCK then
    c.block_key, k = keys[k], k + 1
  end
  return k
end
