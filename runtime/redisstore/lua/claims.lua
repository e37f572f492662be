-- How a call is sent. Its first argument is a byte of flags, followed by its claims. A claim has these fields, in this order: kind, mode,
-- has, limit, cost, a, b, wait and text; and if its rule has blocks, block and block_most. See common.lua. Each claim has the key of its state,
-- then the key of its free places if it needs them, then the key of its block if its rule has blocks, then that of its pause likewise.
--
-- Some calls have a second argument, with what is different in other calls: the most permits that the call takes, if it takes as many as every
-- rule admits; these, and the length of the lease, if the call takes permits ahead; or the texts of the claims that have a text of their own,
-- which are empty in the first argument, each followed by a zero byte.
--
-- In these files a call is the list of its claims, with these properties:
--
--   peek, report, up_to, refused, adjusts, rollback, leases, gives
--                what to do: see engine.Call
--   pausable     whether any rule has pauses
--   has_texts    whether the second argument has texts
--   has_second   whether the call has a second argument
--   keys         how many keys its claims have
--   enforced     the claims whose rule is in enforce mode
--   plain        whether decide_plain can decide the call: all rules are in enforce mode, without waits and blocks, all costs are 1, and
--                at most a report is asked for. Most calls are plain

local MAX_KNOWN = 1000

-- known holds calls by their first argument, which is the same for all subjects, so a library parses it only once. size is the number of
-- their claims. Callers may send more than MAX_KNOWN claims, for example with many different costs. Then the library forgets all of them,
-- and parses each call when it comes again.
local known, size = {}, 0

-- Adds the claim that begins at text[from] to a call, and returns where the next claim begins.
local function add_claim(claims, text, from)
  local kind, mode, has, limit, cost, p, q, wait, words, behind = parse('<BBBddddds', text, from)
  local is = use(KINDS[kind])
  local c = {
    kind = kind, mode = mode, has = has, number = #claims + 1, limit = limit, cost = cost, a = p, b = q, wait = wait,
    text = words, is = is, check = is.check, load = is.load, commit = is.commit,
  }
  claims.keys = claims.keys + 1
  if has > 0 then
    if includes(has, BLOCK) then c.block, c.block_most, behind = parse('<dd', text, behind) end
    for _, key in ipairs { FREE, BLOCK, PAUSE } do
      if includes(has, key) then claims.keys = claims.keys + 1 end
    end
    claims.pausable = claims.pausable or includes(has, PAUSE)
  end
  if is.prepare then is.prepare(c) end
  claims[c.number] = c
  claims.plain = claims.plain and mode == ENFORCE and has == 0 and cost == 1 and not is.counts_running
  claims.has_texts = claims.has_texts or is.has_text
  if mode == ENFORCE then table.insert(claims.enforced, c) end
  return behind
end

local function set_flags(claims, flags)
  local function has(flag) return includes(flags, flag) end
  claims.peek, claims.report, claims.up_to, claims.refused = has(1), has(2) or has(1), has(4), has(8)
  claims.adjusts, claims.rollback, claims.leases, claims.gives = has(16), has(32), has(64), has(128)
end

-- Reads the first argument of a call. That of an adjustment contains the time of a charge, so it is not kept.
local function new_call(text)
  local flags, from = byte(text), 2
  local claims = { keys = 0, enforced = {}, plain = flags == 0 or flags == 2, has_texts = false }
  while from <= #text do from = add_claim(claims, text, from) end
  -- These names are set after the claims: if the table had so many names before, Lua would not store the first claims as an array.
  if flags > 0 then set_flags(claims, flags) end
  claims.has_second = claims.up_to or claims.leases or claims.has_texts
  if not claims.adjusts then
    if size + #claims > MAX_KNOWN then known, size = {}, 0 end
    known[text], size = claims, size + #claims
  end
  return claims
end

-- Sets the texts that the claims of a call have of their own.
local function set_texts(claims, texts)
  local from = 1
  for _, c in ipairs(claims) do
    if c.is.has_text then c.text, from = parse('s', texts, from) end
  end
end

-- Sets the other keys of a claim, which begin at keys[k], and returns the index of the next key.
local function set_keys(c, keys, k)
  if includes(c.has, FREE) then c.free_key, k = keys[k], k + 1 end
  if includes(c.has, BLOCK) then c.block_key, k = keys[k], k + 1 end
  if includes(c.has, PAUSE) then c.pause_key, k = keys[k], k + 1 end
  return k
end
