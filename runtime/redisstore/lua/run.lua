-- A run decides one call or many, one after the other, at one reading of the clock.
--
-- The first argument is a header: a zero byte, and 17 bytes for each call: what to do, which is a sum of the flags of new_operation; and
-- the most permits that it takes, and for how long, if it takes up to a cost or permits ahead. One call without flags has no header. The
-- claims of each call follow: see claims.lua.

local decide = use('decide')

local PLAIN = { plain = true } -- the operation of a call without flags
local operations = { [0] = PLAIN } -- by their flags

local function new_operation(flags)
  local function has(flag) return flags % (2 * flag) >= flag end
  local op = {
    plain = flags == 2,
    peek = has(1), report = has(2) or has(1), up_to = has(4), refused = has(8), adjust = has(16), rollback = has(32), leases = has(64),
  }
  operations[flags] = op
  return op
end

-- Asks each rule when it admits its claim, and decides the call. The keys of the claims begin at keys[k].
local function act(claims, keys, k, now, op)
  local at = now
  notes = nil
  for i = 1, #claims do
    local c = claims[i]
    c.key, k = keys[k], k + 1
    if c.has > 0 then k = set_keys(c, keys, k) end
    local earliest, unknown = c.check(c, now)
    if unknown and c.cost > 0 then return -now end
    c.earliest = earliest
    if earliest > at then at = earliest end
  end
  return (claims.plain and op.plain and decide.plain or op.adjust and decide.adjust or decide.call)(claims, now, op, at)
end

local function run(keys, args)
  if not call then bind() end
  local now, first = clock(), args[1]
  local claims = known[first] or byte(first) > 0 and new_claims(first)
  if claims then return act(claims, keys, 1, now, PLAIN) end
  local replies, k, from = {}, 1, 2
  for i = 2, #args do
    local flags, most, length
    flags, most, length, from = parse('<Bdd', first, from)
    local op = operations[flags] or new_operation(flags)
    op.most, op.length = most, length
    claims = known[args[i]] or new_claims(args[i], op.adjust)
    if #args == 2 then return act(claims, keys, 1, now, op) end
    -- A fault of a decision is the reply of its call alone. One of new_claims fails the run: it leaves unknown how many keys the call has.
    local done, reply = pcall(act, claims, keys, k, now, op)
    if not done then reply = { err = type(reply) == 'table' and reply.err or reply } end
    replies[i - 1] = reply
    k = k + claims.keys
  end
  return replies
end
