-- How a call is sent. Its first argument is a byte of flags, a sum as in codec.go, followed by its claims. A claim has these fields, in this order: kind, mode,
-- has, limit, cost, a, b, wait and text; and if its rule has blocks, block and block_most. See common.lua. Each claim has the key of its state,
-- then the key of its free places if it needs them, then the key of its block if its rule has blocks, then that of its pause likewise.
--
-- Some calls have a second argument, with what differs between calls of the same rules:
--
--   up_to        the most permits that the call takes
--   leases       the same, and the length of the lease
--   has_texts    then the texts of its claims that have own texts, each followed by a zero byte; they are empty in the first argument
--
-- In these files a call is the list of its claims, with these properties:
--
--   peek, report, up_to, refused, adjusts, rollback, leases, gives, grows
--                what to do: see engine.Call. A call with peek and adjusts asks what people see of its claim: see look in decide.lua
--   pausable     whether any rule has pauses
--   has_texts    whether the second argument has texts
--   has_second   whether the call has a second argument
--   keys         how many keys its claims have
--   enforced     the claims whose rule is in enforce mode, if the call is not plain
--   plain        whether decide_plain can admit the call: all its rules are in enforce mode, without blocks and pauses, and the call asks
--                for a report at most. Most calls are plain
--   tells        whether decide.any has to decide the call if a rule refuses it: the refusal tells more than the earliest time, the call
--                may wait, or another rule may no longer know its member later

local MAX_KNOWN = 1000

-- known holds calls by their first argument, which is the same for all subjects, so a library parses it only once. size is the number of
-- their claims. Callers may send more than MAX_KNOWN claims, for example with many different costs. Then the library forgets all of them,
-- and parses each call when it comes again.
local known, size = {}, 0

-- Adds the claim that begins at text[from] to a call, and returns where the next claim begins.
local function add_claim(claims, text, from)
  local kind, mode, has, limit, cost, p, q, wait, words, next_field = parse('<BBBddddds', text, from)
  local is = use(FILE_OF_KIND)
  local c = {
    kind = kind, mode = mode, has = has, number = #claims + 1, limit = limit, cost = cost, a = p, b = q, wait = wait,
    text = words, has_text = OWN_TEXT, is = is, check = is.check, load = is.load, commit = is.commit,
    key = false, earliest = false, newest = false, -- with so many fields, Lua need not make the table larger later
  }
  claims.keys = claims.keys + 1
  if has > 0 then
    local includes = use('decide').includes
    if includes(has, BLOCK) then c.block, c.block_most, next_field = parse('<dd', text, next_field) end
    for _, key in ipairs { FREE, BLOCK, PAUSE } do
      if includes(has, key) then claims.keys = claims.keys + 1 end
    end
    claims.pausable = claims.pausable or includes(has, PAUSE)
  end
  if is.prepare then is.prepare(c) end
  claims[c.number] = c
  claims.plain = claims.plain and mode == ENFORCE and has <= FREE and not is.counts_running
  claims.tells = claims.tells or wait > 0 or cost > 1
  claims.has_texts = claims.has_texts or c.has_text
  return next_field
end

-- Reads the first argument of a call. That of an adjustment contains the time of a charge, so it is not kept.
local function new_call(text)
  local flags, from = string.byte(text), 2
  local claims = { false, false, keys = 0, plain = flags == 0 or flags == FLAG_REPORT, tells = flags > 0, has_texts = false, has_second = false }
  claims[1], claims[2] = nil, nil -- now the table has room for two claims
  while from <= #text do from = add_claim(claims, text, from) end
  claims.tells = claims.tells or claims.has_texts and #claims > 1
  claims.report = flags % FLAG_UP_TO > 0 -- a peek reports, too
  if flags > 0 and flags ~= FLAG_REPORT then
    local includes = use('decide').includes
    claims.peek, claims.up_to, claims.refused = includes(flags, FLAG_PEEK), includes(flags, FLAG_UP_TO), includes(flags, FLAG_REFUSED)
    claims.adjusts, claims.rollback = includes(flags, FLAG_ADJUST), includes(flags, FLAG_ROLLBACK)
    claims.leases = includes(flags, FLAG_LEASE)
    claims.gives, claims.grows = claims.adjusts and includes(flags, FLAG_GIVE), not claims.adjusts and includes(flags, FLAG_GROW)
  end
  claims.has_second = claims.up_to or claims.leases or claims.has_texts
  if not claims.adjusts then
    if size + #claims > MAX_KNOWN then known, size = {}, 0 end
    known[text], size = claims, size + #claims
  end
  return claims
end
