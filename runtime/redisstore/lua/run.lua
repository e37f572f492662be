-- A run decides one call or several, one after the other, all at the same time of the clock. Its arguments are the calls: see claims.lua.
-- If there is one call, the reply of the run is the reply to it. If there are several, it is the list of their replies.

-- Decides a plain call, which all its rules admit at the time at. It charges the call if that is now, and refuses it otherwise. A call
-- whose refusal has to tell more does not come here: see tells in claims.lua. decide.any would decide the same, but it takes longer.
local function decide_plain(claims, now, at)
  local reply = notes or ''
  if at > now then
    for i = 1, #claims do
      local c = claims[i]
      if c.earliest > now then reply = pack('<BBdd', i, REFUSAL, now, c.earliest) .. reply end
    end
    return reply
  end
  for i = 1, claims[2] and #claims or 0 do -- if there is one claim, its commit loads what it needs
    local c = claims[i]
    if c.load then c.load(c, now) end
  end
  for i = 1, #claims do
    local c = claims[i]
    c.commit(c, c.cost, now, now)
  end
  if not (claims.report or notes) then return now end
  return use('reply').of_plain(claims, now)
end

-- Asks each rule when it admits its claim, and decides the call. The keys of the claims begin at keys[k]. second is the call's second argument.
local function decide(claims, keys, k, now, second)
  local at, changed = now, nil
  notes = nil
  if claims.has_texts then use('decide').set_texts(claims, second) end
  for i = 1, #claims do
    local c = claims[i]
    c.key, k = keys[k], k + 1
    if c.has > 0 then k = use('decide').set_keys(c, keys, k) end
    local earliest, found = c.check(c, now)
    if found == OTHER_WINDOW and c.cost > 0 then return -now end -- the caller sends the call again: see reply.lua
    c.changed, changed = found, changed or found
    c.earliest = earliest
    if earliest > at then at = earliest end
  end
  if changed and not (claims.peek or claims.adjusts) then
    for _, c in ipairs(claims) do
      if c.changed == CHANGED then c.is.write(c) end
    end
  end
  if claims.plain and not (at > now and claims.tells) then return decide_plain(claims, now, at) end
  if claims.adjusts then return use('decide').adjust(claims, now) end
  return use('decide').any(claims, now, second)
end

local function run(keys, args)
  if not call then call, pack, parse = redis.call, struct.pack, struct.unpack end
  if next(shared) then shared = {} end
  local now, claims = clock(), known[args[1]] or new_call(args[1])
  if claims.keys == #keys then return decide(claims, keys, 1, now, args[2]) end
  local replies, i, k = {}, 1, 1
  while claims do
    -- If a decision fails, the error is the reply to that call. If new_call fails, the run fails: the number of the call's keys is unknown.
    local done, reply = pcall(decide, claims, keys, k, now, args[i + 1])
    if not done then
      reply, shared = { err = type(reply) == 'table' and reply.err or reply }, {}
    end
    replies[#replies + 1] = reply
    i, k = i + (claims.has_second and 2 or 1), k + claims.keys
    claims = args[i] and (known[args[i]] or new_call(args[i]))
  end
  return replies
end
