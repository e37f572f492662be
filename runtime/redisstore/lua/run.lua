-- A run decides one call or many, one after the other, at one reading of the clock.
--
-- The first argument is a header: a zero byte, and 21 bytes for each call: what to do, which is a sum of the flags of new_operation; the
-- numbers of its claims and of their keys; and the most permits that it takes, and for how long, if it takes up to a cost or permits
-- ahead. One call without flags has no header. The claims follow: see claims.lua.

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

local claims = {} -- of the present call. A new table for each call would take longer.

-- Reads the claims from args[a] to args[last], whose keys begin at keys[k], asks each rule when it admits its claim, and decides the call.
local function act(keys, args, k, a, last, now, op)
  local n, at, plain = 0, now, op.plain
  notes = nil
  for i = a, last do
    local c = known[args[i]] or new_claim(args[i], op.adjust)
    n = n + 1
    claims[n], c.key, k = c, keys[k], k + 1
    if c.has > 0 then k = read_keys(c, keys, k) end
    local earliest, unknown = c.check(c, now)
    if unknown and c.cost > 0 then return -now end
    c.earliest = earliest
    if earliest > at then at = earliest end
    plain = plain and c.plain
  end
  if claims[n + 1] then
    for i = #claims, n + 1, -1 do claims[i] = nil end
  end
  return (plain and decide.plain or op.adjust and decide.adjust or decide.call)(claims, now, op, at)
end

local function run(keys, args)
  if not call then bind() end
  local now, header = clock(), args[1]
  if known[header] or byte(header) > 0 then return act(keys, args, 1, 1, #args, now, PLAIN) end -- it is a claim
  local replies, k, a = nil, 1, 2
  for from = 2, #header, 21 do
    local flags, count, keys_of_call, most, length = parse('<BHHdd', header, from)
    local op = operations[flags] or new_operation(flags)
    op.most, op.length = most, length
    if #header == 22 then return act(keys, args, k, a, a + count - 1, now, op) end
    replies = replies or {}
    local done, reply = pcall(act, keys, args, k, a, a + count - 1, now, op)
    if not done then reply = { err = type(reply) == 'table' and reply.err or reply } end
    replies[#replies + 1] = reply -- a fault is the reply of its call alone
    k, a = k + keys_of_call, a + count
  end
  return replies
end
