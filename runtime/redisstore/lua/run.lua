-- A run decides one call or several, one after the other, all at the same time of the clock. Its arguments are the calls: see claims.lua.
-- If there is one call, the reply of the run is the reply to it. If there are several, it is the list of their replies.

local decide = use('decide').call

local function run(keys, args)
  if not call then bind() end
  local now, claims = clock(), known[args[1]] or new_call(args[1])
  if claims.keys == #keys then return decide(claims, keys, 1, now, args[2]) end
  local replies, i, k = {}, 1, 1
  while claims do
    -- If a decision fails, the error is the reply to that call. If new_call fails, the run fails: the number of the call's keys is unknown.
    local done, reply = pcall(decide, claims, keys, k, now, args[i + 1])
    if not done then reply = { err = type(reply) == 'table' and reply.err or reply } end
    table.insert(replies, reply)
    i, k = i + (claims.has_second and 2 or 1), k + claims.keys
    claims = args[i] and (known[args[i]] or new_call(args[i]))
  end
  return replies
end
