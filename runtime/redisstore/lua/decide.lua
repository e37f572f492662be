-- Decides one call: charges all its rules or none.

local decide = {}

local BLOCK_NAMES = { 'stop', time = 'stop' } -- the state of a block is LAYOUT, and when it ends

-- Notes until when the subject of a claim is blocked, if it is.
local function note_block(c, now)
  local state = call('GET', c.block_key)
  local found = state and read_groups(c, state, BLOCK_NAMES, now, now + HORIZON)[1]
  c.blocked_until = found and found.stop
  if found then c.earliest, c.refused = max(c.earliest, found.stop), true end
end

-- Notes whether each rule refuses its claim. Returns when all admit the call, whether one refuses it, and whether one lets it wait.
local function note(claims, now)
  local at, refused, waits = now, claims.refused, false
  for i = 1, #claims do
    local c = claims[i]
    if c.mode == TRIGGER then c.earliest, c.fired = now, false end
    c.refused = c.earliest > now + c.wait
    if c.has >= BLOCK then note_block(c, now) end
    if c.earliest > now and c.mode == ENFORCE then
      at, refused, waits = max(at, c.earliest), refused or c.refused, waits or c.wait > 0
    end
  end
  return at, refused, waits
end

-- Finds the time for which a call that cannot be admitted now is charged, if its rules give it the time to wait. Returns that time,
-- or when to ask again; whether the call is admitted; and whether a rule refuses it.
local function place(claims, now, at, refused)
  local free, before = use('places').first(claims, now), nil
  if free then
    for _, c in ipairs(claims.enforced) do c.refused = false end
    return free, true, false
  end
  while at ~= before and not refused do -- a window in which the call fits now may be full by then
    before = at
    for _, c in ipairs(claims.enforced) do
      local earliest = c.is.earliest(c, c.cost, now, at)
      if earliest > at then
        at, c.earliest, c.refused = earliest, earliest, earliest > now + c.wait
        refused = refused or c.refused
      end
    end
  end
  local admitted = not refused
  for _, c in ipairs(claims.enforced) do admitted = admitted and c.is.reserves(c, now, at) end
  return at, admitted, refused
end

-- Returns how many permits a call may take of each rule. Notes that rules in shadow mode refuse if they have fewer permits.
local function available(claims, now, most)
  local n = most
  for _, c in ipairs(claims.enforced) do n = min(n, c.is.room(c, now)) end
  for _, c in ipairs(claims) do
    if c.mode == SHADOW and c.is.room(c, now) < n then
      c.refused, c.earliest = true, c.is.earliest(c, min(n, c.limit), now, now)
    end
  end
  return n
end

-- Loads what only charges need. So a later layout is met before the first write.
local function load(claims, now)
  for i = 1, #claims do
    local c = claims[i]
    if c.load then c.load(c, now) end
  end
end

-- Charges one rule. A rule that only watches counts when the call is decided.
local function charge(c, n, now, at)
  if c.mode == ENFORCE then
    if at == now or not use('places').take(c, at, n) then c.commit(c, n, now, at) end
    return
  end
  local room = c.mode == TRIGGER and c.is.room(c, now) or 0
  c.fired = not c.known and room > 0 and room <= n and c.limit - room + n or nil -- a member that is known costs nothing
  c.commit(c, n, now, now)
end

-- Charges the rules of a call that is admitted. Returns how many permits it took of each rule, if it has an amount; and when it is
-- admitted, or its lease ends.
local function commit(claims, now, at, amount)
  load(claims, now)
  if claims.leases then return use('lease').take(claims, now, parse('<dd', amount)) end
  local taken = claims.up_to and available(claims, now, (parse('<d', amount)))
  for _, c in ipairs(claims) do
    if not c.refused then charge(c, taken or c.cost, now, at) end
  end
  return taken, at
end

-- Begins the blocks that follow from a refusal.
local function block(claims, now)
  for _, c in ipairs(claims) do
    if c.block_key and c.refused and not c.blocked_until then
      c.blocked_until = now + c.block
      c.earliest = max(c.earliest, c.blocked_until)
      if not claims.peek then write_groups(c.block_key, { { stop = c.blocked_until } }, BLOCK_NAMES) end
    end
  end
end

-- The reply is one of
--   time     admitted or adjusted now, which is that time, and there is nothing to tell
--   -time    nothing was done: ask again, and tell the calendar windows that hold this time
--   entries  each begins with the number of a claim, or 0 for the call as a whole, and what follows:
--     1      the rule refuses: now, and the earliest time
--     2      the price of a warm-up; of an adjustment, by how much the debt would last too long, and 0
--     3      the earliest time, the room, when all permits are there again, and the permits used if a trigger fires
--     4      a state of the claim is damaged and counts as none
--     5      the time that the charge is recorded at, if it is not that of the call
--     6      the call is admitted or adjusted: now; when, or when a lease ends; and, if it has an amount, the permits that it took of each
--            rule
--     7      the call is not admitted: now; when to ask again, or 0; and 0. It may be missing where a rule refuses the call
-- at is when the call is admitted or to be asked again, or 0 if it is refused.
local function reply_of(claims, now, at, admitted, taken)
  local reply = notes or ''
  for i = 1, #claims do
    local c = claims[i]
    if c.refused then reply = pack('<BBdd', i, 1, now, c.earliest) .. reply end
    if claims.report or c.fired or c.refused and c.cost > 1 then
      local room, full = c.is.room(c, now), c.is.full(c, now)
      reply = pack('<BBdddd', i, 3, c.earliest, c.blocked_until and 0 or room, full, c.fired or 0) .. reply
    end
  end
  if at == 0 and not claims.refused then return reply end
  if reply == '' and admitted and at == now and not taken then return now end
  return pack('<BBddd', 0, admitted and 6 or 7, now, at, taken or 0) .. reply
end

-- Decides a plain call, which all rules admit at a time. decide_any would do the same, but takes longer. If the call is refused, it asks
-- for no report.
local function decide_plain(claims, now, at)
  local reply = notes or ''
  if at > now then
    for i = 1, #claims do
      local c = claims[i]
      if c.earliest > now then reply = pack('<BBdd', i, 1, now, c.earliest) .. reply end
    end
    return reply
  end
  if claims[2] then load(claims, now) end -- a lone claim loads what it needs by itself
  for i = 1, #claims do
    local c = claims[i]
    c.commit(c, 1, now, now)
  end
  if not (claims.report or notes) then return now end
  for _, c in ipairs(claims) do c.refused = false end
  return reply_of(claims, now, now, true)
end

-- Decides any other call.
local function decide_any(claims, now, amount)
  local at, refused, waits = note(claims, now)
  local admitted, taken = at == now and not refused, nil
  if waits and not claims.refused then at, admitted, refused = place(claims, now, at, refused) end
  if refused then
    at = 0
    block(claims, now)
  elseif admitted and not claims.peek then
    taken, at = commit(claims, now, at, amount)
  end
  return reply_of(claims, now, at, admitted, taken)
end

-- Changes what an admitted call was charged: takes the cost of each claim, beyond the limit if need be, or gives it back if it is negative.
local function adjust(claims, now)
  load(claims, now)
  for _, c in ipairs(claims) do
    c.places = c.free_key and c.wait > now and use('places').load(c, now)
  end
  for _, c in ipairs(claims) do
    if c.cost > 0 then
      local charge = c.is.charge or c.commit
      charge(c, c.cost, now, now)
    elseif c.places then
      use('places').give_back(c, -c.cost, now)
    else
      c.is.give_back(c, -c.cost, now, c.wait, claims.rollback)
    end
  end
  return reply_of(claims, now, now, true)
end

-- Asks each rule when it admits its claim, and decides the call. The keys of the claims begin at keys[k].
function decide.call(claims, keys, k, now, amount)
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
  if claims.plain and not (at > now and claims.report) then return decide_plain(claims, now, at) end
  if claims.adjusts then return adjust(claims, now) end
  return decide_any(claims, now, amount)
end
