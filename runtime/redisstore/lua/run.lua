-- A run decides one call or many, one after the other, at one reading of the clock.
--
-- The first argument has two bytes for each call: what to do, which is a sum of flags of common.lua, and the number of its claims. It is
-- empty for one call without flags. A call that takes up to a cost has that cost as an argument; one that takes permits ahead has the most
-- permits, and for how long they are. Each claim is an argument: kind, mode,
-- and which keys it has; limit, cost, a, b and wait; and text. If it has a block, the length of the block is another argument. The keys
-- of a claim are its state, its free places if it has any, and its block if it has one.

local decide = use('decide')

local FREE, BLOCK = 1, 2
local MAX_KNOWN = 1000

-- Claims by the text they were sent as, which is the same for all subjects. A library parses such a text once. serial is the number of
-- the call that a claim was last part of: one call may have two claims of the same text.
local known, size, serial = {}, 0, 0

local function new_claim(record, taken)
  local kind, mode, has, limit, cost, p, q, wait, text = parse('<BBBddddds', record)
  local c = {
    kind = kind, mode = mode, has = has, limit = limit, cost = cost, a = p, b = q, wait = wait, text = text, is = use(KINDS[kind]),
  }
  if not taken and kind < DISTINCT then -- members are of one call
    if size == MAX_KNOWN then known, size = {}, 0 end
    known[record], size = c, size + 1
  end
  return c
end

-- Reads the keys and the argument that some claims have besides.
local function read_more(c, keys, args, k, a)
  if c.has % 2 >= FREE then
    c.free = keys[k]
    k = k + 1
  end
  if c.has >= BLOCK then
    c.blocked, c.block = keys[k], tonumber(args[a])
    k, a = k + 1, a + 1
  end
  return k, a
end

-- Reads a number of claims, or all that are left if count is nil. The first one begins at keys[k] and args[a]. Returns the claims, and
-- where the next call begins.
local function read_claims(count, keys, args, k, a)
  local claims, i = {}, 0
  serial = serial + 1
  while i ~= count and args[a] do
    i = i + 1
    local record = args[a]
    local c = known[record]
    if not c or c.serial == serial then c = new_claim(record, c) end
    c.serial, c.key, c.fired, claims[i] = serial, keys[k], nil, c
    k, a = k + 1, a + 1
    if c.has > 0 then k, a = read_more(c, keys, args, k, a) end
  end
  return claims, k, a
end

local function act(op, claims, now)
  if op.adjust then return decide.adjust(claims, now, op) end
  return decide.call(claims, now, op)
end

local function run(keys, args)
  if not call then bind() end
  local now, header = clock(), args[1]
  if header == '' then -- one call without flags
    return decide.call(read_claims(nil, keys, args, 1, 2), now, decide.PLAIN)
  end
  local replies, k, a, claims = {}, 1, 2
  for from = 1, #header, 2 do
    local flags, count = byte(header, from, from + 1)
    local op = operation(flags)
    if op.up_to then
      op.most, a = tonumber(args[a]), a + 1
    elseif op.lease and not op.adjust then
      op.most, op.lease, a = tonumber(args[a]), tonumber(args[a + 1]), a + 2
    end
    claims, k, a = read_claims(count, keys, args, k, a)
    if #header == 2 then return act(op, claims, now) end
    local done, reply = pcall(act, op, claims, now)
    if not done then reply = { err = type(reply) == 'table' and reply.err or reply } end
    replies[#replies + 1] = reply -- a fault is the reply of its call alone
  end
  return replies
end
