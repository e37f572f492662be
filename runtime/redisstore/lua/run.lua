-- A run decides one call or many, one after the other, at one reading of the clock.
--
-- The first argument has two bytes for each call: what to do, a sum of flags of common.lua, and the number of its claims. Each claim
-- is an argument: kind, mode, and which keys it has; limit, cost, a, b and wait; and text. If it has a block, the length of that is
-- another argument. Its keys are its state, its free places if it has any, and its block if it has one.

local FREE, BLOCK = 1, 2

local function read_claim(record, keys, args, k, a)
  local kind, mode, extra, limit, cost, p, q, wait, text = parse('<BBBddddds', record)
  local c = {
    kind = kind, mode = mode, limit = limit, cost = cost, a = p, b = q, wait = wait, text = text, key = keys[k], is = KINDS[kind],
  }
  if extra % 2 >= FREE then
    k = k + 1
    c.free = keys[k]
  end
  if extra >= BLOCK then
    k, a = k + 1, a + 1
    c.blocked, c.block = keys[k], tonumber(args[a])
  end
  return c, k + 1, a + 1
end

local function run(keys, args)
  if not call then bind() end
  local now, header, replies, k, a = clock(), args[1], nil, 1, 2
  for from = 1, #header, 2 do
    local flags, count = byte(header, from, from + 1)
    local claims, op, act = {}, PLAIN, decide
    if flags > 0 then op = operation(flags) end
    for i = 1, count do claims[i], k, a = read_claim(args[a], keys, args, k, a) end
    if op.adjust then act = adjust end
    if #header == 2 then return act(claims, now, op) end
    local _, reply = pcall(act, claims, now, op)
    replies = replies or {}
    replies[#replies + 1] = reply -- a fault is the reply of its call alone
  end
  return replies
end
