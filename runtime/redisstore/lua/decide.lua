-- Decides one call whose claims were asked: charges all its rules or none.

local decide = {}

-- Notes until when the subject of a claim is blocked, if it is.
local function note_block(c, now)
  local state = get(c, c.block_key, 8)
  local stop = state and parse('<d', state, 2) or 0
  if stop <= now then return end
  if not valid(stop, 0, 0) or stop > now + HORIZON then return damage(c) end
  c.blocked_until, c.earliest, c.refused = stop, max(c.earliest, stop), true
end

-- Notes whether each rule refuses its claim. Returns when all admit the call, whether one refuses it, and whether one lets it wait.
local function note(claims, now)
  local at, refused, waits = now, false, false
  for i = 1, #claims do
    local c = claims[i]
    if c.mode == TRIGGER then c.earliest = now end
    c.refused, c.fired, c.blocked_until = c.earliest > now + c.wait, false, false
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
  local free = use('places').first(claims, now)
  if free then
    for _, c in ipairs(claims) do
      if c.mode == ENFORCE then c.refused = false end
    end
    return free, true, false
  end
  local before
  while at ~= before and not refused do -- a window in which the call fits now may be full by then
    before = at
    for _, c in ipairs(claims) do
      local earliest = c.mode == ENFORCE and c.is.earliest(c, c.cost, now, at) or at
      if earliest > at then
        at, c.earliest, c.refused = earliest, earliest, earliest > now + c.wait
        refused = refused or c.refused
      end
    end
  end
  local admitted = not refused
  for _, c in ipairs(claims) do
    admitted = admitted and (c.mode ~= ENFORCE or c.is.reserves(c, now, at))
  end
  return at, admitted, refused
end

-- Returns how many permits a call may take of each rule. Notes that rules in shadow mode refuse if they have fewer permits.
local function available(claims, now, most)
  local n = most
  for _, c in ipairs(claims) do
    if c.mode == ENFORCE then n = min(n, c.is.room(c, now)) end
  end
  for _, c in ipairs(claims) do
    if c.mode == SHADOW and c.is.room(c, now) < n then
      c.refused, c.earliest = true, c.is.earliest(c, min(n, c.limit), now, now)
    end
  end
  return n
end

-- Charges one rule.
local function charge(c, n, now, at)
  if c.mode == ENFORCE then
    if at == now or not use('places').take(c, at, n) then c.commit(c, n, now, at) end
    return
  end
  -- Rules that only watch count when the call is decided.
  local room = c.mode == TRIGGER and c.is.room(c, now) or 0
  c.fired = not c.known and room > 0 and room <= n and c.limit - room + n or nil -- a member that is known costs nothing
  c.commit(c, n, now, now)
end

-- Loads what only charges need. So a later layout is met before the first write.
local function load(claims, now)
  local list = claims.to_load
  for i = 1, #list do
    local c = list[i]
    c.load(c, now)
  end
end

-- Charges the rules of a call that is admitted: each its cost, or all n if that is given.
local function commit(claims, n, now, at)
  load(claims, now)
  for _, c in ipairs(claims) do
    if not c.refused then charge(c, n or c.cost, now, at) end
  end
end

-- Begins the blocks that follow from a refusal.
local function block(claims, now, peek)
  for _, c in ipairs(claims) do
    if c.block_key and c.refused and not c.blocked_until then
      c.blocked_until = now + c.block
      c.earliest = max(c.earliest, c.blocked_until)
      if not peek then set(c.block_key, pack('<Bd', LAYOUT, c.blocked_until), c.blocked_until) end
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
--     4      the same of a rule that refuses
--     5      a state of the claim is damaged and counts as none
--     6      the time that the charge is recorded at, if it is not that of the call
--     7      the call is admitted: now; when, or when a lease ends; and the permits that each rule was charged by a lease, or by a call
--            that takes up to a cost
--     8      the call is not admitted, or was an adjustment: now; when to ask again, or 0; and 0
local function reply_of(claims, now, at, admitted, taken, report)
  local reply = notes or ''
  for _, c in ipairs(claims) do
    if report or c.fired or c.refused and c.cost > 1 then
      local room, full = c.is.room(c, now), c.is.full(c, now)
      reply = pack('<BBdddd', c.number, c.refused and 4 or 3, c.earliest, c.blocked_until and 0 or room, full, c.fired or 0) .. reply
    elseif c.refused then
      reply = pack('<BBdd', c.number, 1, now, c.earliest) .. reply
    end
    if c.extra and c.extra + c.used_up > 0 then reply = pack('<BBdd', c.number, 2, c.extra, c.used_up) .. reply end
  end
  if reply == '' and admitted and at == now and not taken then return now end
  return pack('<BBddd', 0, admitted and 7 or 8, now, at, taken or 0) .. reply
end

-- Returns the reply to a refused call that asks for no report: which rules refuse it.
local function refusal(claims, now)
  local reply = notes or ''
  for i = 1, #claims do
    local c = claims[i]
    if c.earliest > now then reply = pack('<BBdd', c.number, 1, now, c.earliest) .. reply end
  end
  return reply
end

-- Decides a plain call, which all rules admit at a time. Most calls are plain: each rule enforces its limit, without waits and blocks, on a
-- cost of 1, and no more than a report is asked for. What it does, decide.call would do as well, but in longer time.
function decide.plain(claims, now, op, at)
  if at > now then
    if not op.report then return refusal(claims, now) end
  else
    if claims[2] then load(claims, now) end
    for i = 1, #claims do
      local c = claims[i]
      c.commit(c, 1, now, now)
    end
    if not op.report and not notes then return now end
  end
  note(claims, now)
  return reply_of(claims, now, at > now and 0 or now, at == now, nil, op.report)
end

-- Decides any other call.
function decide.call(claims, now, op)
  local at, refused, waits = note(claims, now)
  local admitted, taken = at == now, nil
  if op.refused then
    refused = true
  elseif waits then
    at, admitted, refused = place(claims, now, at, refused)
  end
  if refused then
    at, admitted = 0, false
    block(claims, now, op.peek)
  elseif admitted and op.leases then
    load(claims, now)
    taken, at = use('lease').take(claims, now, op)
  elseif admitted and not op.peek then
    taken = op.up_to and available(claims, now, op.most)
    commit(claims, taken, now, at)
  end
  return reply_of(claims, now, at, admitted, taken, op.report)
end

-- Changes what an admitted call was charged: takes the cost of each claim, beyond the limit if need be, or gives it back if it is negative.
function decide.adjust(claims, now, op)
  load(claims, now)
  for _, c in ipairs(claims) do
    if c.free_key and c.wait > now then use('places').load(c, now) end
  end
  for _, c in ipairs(claims) do
    if c.cost > 0 then
      local charge = c.is.charge or c.is.commit
      local beyond = charge(c, c.cost, now, now) or 0
      if beyond > 0 then add_note(pack('<BBdd', c.number, 2, beyond, 0)) end
    elseif c.places then
      use('places').give_back(c, -c.cost, now, op.rollback)
    else
      c.is.give_back(c, -c.cost, now, c.wait, op.rollback)
    end
  end
  return notes and notes .. pack('<BBddd', 0, 8, now, 0, 0) or now
end
