-- A run decides one call or many, one after the other, at one reading of the clock.
--
-- The first argument is a header: a zero byte, and two bytes for each call: what to do, which is a sum of the flags of operation, and the
-- number of its claims. One call without flags has no header. A call that takes up to a cost has that cost as an argument; one that takes
-- permits ahead has the most permits, and for how long they are. Each claim is an argument: kind, mode, which keys it has, and its number
-- in the call; limit, cost, a, b, wait and the length of a block; and text. The keys of a claim are its state, its free places if it has
-- any, and its block if it has one.

local decide = use('decide')

local MAX_KNOWN = 1000

-- Claims by the text they were sent as, which is the same for all subjects. A library parses such a text once.
local known, size = {}, 0

local claims = {} -- of the present call. A new table for each call would take longer.

local function new_claim(record)
  local kind, mode, has, number, limit, cost, p, q, wait, block, text = parse('<BBBBdddddds', record)
  local is = use(KINDS[kind])
  local c = {
    kind = kind, mode = mode, has = has, number = number, limit = limit, cost = cost, a = p, b = q, wait = wait, block = block,
    text = text, is = is, check = is.check, commit = is.commit, plain = mode == ENFORCE and kind ~= WARMUP and has == 0 and cost == 1,
  }
  if kind < DISTINCT then -- members are of one call
    if size == MAX_KNOWN then known, size = {}, 0 end
    known[record], size = c, size + 1
  end
  return c
end

-- Reads the keys that some claims have besides. They begin at keys[k]. Returns where the next ones are.
local function read_keys(c, keys, k)
  if c.has % 2 >= FREE then
    c.free = keys[k]
    k = k + 1
  end
  if c.has >= BLOCK then
    c.blocked = keys[k]
    k = k + 1
  end
  return k
end

-- Reads the claims from args[a] to args[last], whose keys begin at keys[k]. Returns where the next keys are.
local function read_claims(keys, args, k, a, last)
  for i = #claims, last - a + 2, -1 do claims[i] = nil end
  for i = a, last do
    local c = known[args[i]] or new_claim(args[i])
    claims[i - a + 1], c.key = c, keys[k]
    k = k + 1
    if c.has > 0 then k = read_keys(c, keys, k) end
  end
  return k
end

-- Returns what a call asks for, from a sum of flags.
local function operation(flags)
  local function has(flag) return flags % (2 * flag) >= flag end
  return {
    peek = has(1), report = has(2) or has(1), up_to = has(4), refused = has(8), adjust = has(16), rollback = has(32), lease = has(64),
  }
end

local function run(keys, args)
  if not call then bind() end
  local now, header = clock(), args[1]
  if known[header] or byte(header) > 0 then -- it is a claim
    read_claims(keys, args, 1, 1, #args)
    return decide.call(claims, now, decide.PLAIN)
  end
  local replies, k, a = {}, 1, 2
  for from = 2, #header, 2 do
    local flags, count = byte(header, from, from + 1)
    local op = operation(flags)
    if op.up_to then
      op.most, a = tonumber(args[a]), a + 1
    elseif op.lease then
      op.most, op.lease, a = tonumber(args[a]), tonumber(args[a + 1]), a + 2
    end
    k = read_claims(keys, args, k, a, a + count - 1)
    a = a + count
    local act = op.adjust and decide.adjust or decide.call
    if #header == 3 then return act(claims, now, op) end
    local done, reply = pcall(act, claims, now, op)
    if not done then reply = { err = type(reply) == 'table' and reply.err or reply } end
    replies[#replies + 1] = reply -- a fault is the reply of its call alone
  end
  return replies
end
