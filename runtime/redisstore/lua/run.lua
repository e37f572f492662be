-- A run decides one call or many, one after the other, at one reading of the clock. Its arguments are the calls: see claims.lua. The
-- reply to a single call stands alone, and replies to more are a list.

local decide = use('decide').call

local function run(keys, args)
  if not call then bind() end
  local now, claims = clock(), known[args[1]] or new_call(args[1])
  if claims.keys == #keys then return decide(claims, keys, 1, now, args[2]) end
  local replies, i, k = {}, 1, 1
  while claims do
    -- A fault of a decision is the reply of its call alone. One of new_call fails the run: it leaves unknown how many keys the call has.
    local done, reply = pcall(decide, claims, keys, k, now, args[i + 1])
    if not done then reply = { err = type(reply) == 'table' and reply.err or reply } end
    table.insert(replies, reply)
    i, k = i + claims.arguments, k + claims.keys
    claims = args[i] and (known[args[i]] or new_call(args[i]))
  end
  return replies
end
