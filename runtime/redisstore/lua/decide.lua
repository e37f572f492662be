-- Decides one call: checks all its rules first, and then charges all of them or none.

local decide = {}

decide.PLAIN = {} -- the operation of a call without flags

-- Reports whether the subject of a claim is blocked, and notes until when.
local function is_blocked(c, now)
  local state = call('GET', c.blocked)
  local stop = state and #state == 8 and parse('<d', state) or 0
  if stop <= now or not valid(stop, 0, 0) then return false end
  c.stop_block, c.earliest = stop, max(c.earliest, stop)
  return true
end

-- Notes when a rule admits its claim, and whether it refuses it.
local function note(c, now, earliest)
  if c.mode == TRIGGER then earliest = now end
  c.earliest, c.stop_block = earliest, nil
  c.refused = earliest > now + c.wait
  if c.blocked and is_blocked(c, now) then c.refused = true end
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
  local moved = not refused
  while moved and not refused do -- a window in which the call fits now may be full by then
    moved = false
    for _, c in ipairs(claims) do
      local earliest = c.mode == ENFORCE and c.is.earliest(c, now, at) or at
      if earliest > at then
        at, c.earliest, c.refused, moved = earliest, earliest, earliest > now + c.wait, true
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

-- Returns how many permits a call may take of each rule, and refuses them to the shadows that do not have so many.
local function available(claims, now, most)
  local n = most
  for _, c in ipairs(claims) do
    if c.mode == ENFORCE then n = min(n, c.is.room(c, now)) end
  end
  for _, c in ipairs(claims) do
    if c.mode == SHADOW and c.is.room(c, now) < n then
      c.cost = min(n, c.limit)
      if c.kind == SLIDING then c.text = integer(c.cost - c.limit - 1) end
      c.refused, c.earliest = true, c.is.check(c, now)
      c.cost = 1
      if c.kind == SLIDING then c.text = integer(-c.limit) end
    end
  end
  return n
end

-- Charges one rule of a call that waits, or that only watches.
local function charge(c, n, now, at)
  if c.mode == ENFORCE then
    if not use('places').take(c, at, n) then c.is.commit(c, n, now, at) end
    return
  end
  -- Rules that only watch count when the call is decided.
  local room = c.mode == TRIGGER and c.is.room(c, now) or 0
  c.fired = not c.known and room > 0 and room <= n and c.limit - room + n or nil -- a member that is known costs nothing
  c.is.commit(c, n, now, now)
end

-- Begins the block that follows from a refusal.
local function refuse(c, now, peek)
  if not c.refused or not c.blocked or c.stop_block then return end
  c.earliest = max(c.earliest, now + c.block)
  c.stop_block = now + c.block
  if not peek then set(c.blocked, pack('<d', c.stop_block), c.stop_block) end
end

-- Says what a rule has to tell of a decision, or nothing. An entry begins with the number of the rule and what follows: 1, it refuses,
-- with the earliest time; 2, the price of a warm-up; 3, the earliest time, the room, when all permits are there again, and the permits
-- used if a trigger fires, or 4, the same of a rule that refuses.
local function tell(i, c, now, report)
  local entry = ''
  if report or c.fired or c.refused and c.cost > 1 then
    local room = c.stop_block and 0 or c.is.room(c, now)
    entry = pack('<BBdddd', i, c.refused and 4 or 3, c.earliest, room, c.is.full(c, now), c.fired or 0)
  elseif c.refused then
    entry = pack('<BBd', i, 1, c.earliest)
  end
  if c.extra and c.extra + c.used_up > 0 then entry = entry .. pack('<BBdd', i, 2, c.extra, c.used_up) end
  return entry
end

-- The reply is one of
--   time     admitted now, which is that time, and there is nothing to tell
--   -time    nothing was done: ask again, and tell the calendar windows that hold this time
--   text     0 and now if the call is refused. Else 1 or 2; now; when the call is admitted, or when to ask again; the permits that
--            each rule was charged by a call that takes up to a cost. Then what each rule has to tell. Of a lease it is when that ends
--            instead of when the call is admitted, and lease.lua's entries follow.
local function reply_of(claims, now, at, admitted, taken, report)
  local reply
  if admitted or at > 0 then
    reply = pack('<Bddd', admitted and 1 or 2, now, at, taken)
  else
    reply = pack('<Bd', 0, now)
  end
  for i = 1, #claims do
    local c = claims[i]
    if report or c.refused or c.fired or c.extra then reply = reply .. tell(i, c, now, report) end
  end
  return reply
end

function decide.call(claims, now, op)
  local at, admitted, refused = now, true, op.refused
  for i = 1, #claims do
    local c = claims[i]
    local earliest, unknown = c.is.check(c, now)
    if unknown then return -now end
    if earliest > now or c.blocked then
      note(c, now, earliest)
      if c.mode == ENFORCE then
        refused = refused or c.refused
        at = max(at, c.earliest)
      end
    else
      c.refused, c.earliest, c.stop_block = false, now, nil
    end
  end
  if at > now and not op.refused then
    at, admitted, refused = place(claims, now, at, refused)
  end
  local tells, taken = op ~= decide.PLAIN or at > now, 0
  if refused then
    at, admitted = 0, false
    for i = 1, #claims do
      if claims[i].blocked then refuse(claims[i], now, op.peek) end
    end
  elseif op.lease and admitted then
    local recorded
    taken, at, recorded = use('lease').take(claims, now, op)
    return reply_of(claims, now, at, admitted, taken, op.report) .. recorded
  elseif admitted and not op.peek then
    if op.up_to then taken = available(claims, now, op.most) end
    for i = 1, #claims do
      local c = claims[i]
      local n = op.up_to and taken or c.cost
      if c.refused then
        tells = true
      elseif at == now and c.mode == ENFORCE then
        c.is.commit(c, n, now, at)
      else
        charge(c, n, now, at)
      end
      tells = tells or c.fired or c.extra
    end
  end
  if not tells and admitted then return now end
  return reply_of(claims, now, at, admitted, taken, op.report)
end

-- Changes what an admitted call was charged: takes the cost of each claim, beyond the limit if need be, or gives it back if it is negative.
function decide.adjust(claims, now, op)
  for _, c in ipairs(claims) do
    local _, unknown = c.is.check(c, now)
    if unknown and c.cost > 0 then return -now end
  end
  for _, c in ipairs(claims) do
    if c.cost > 0 then
      c.is.charge(c, c.cost, now)
    else
      use(op.lease and 'lease' or 'places').give_back(c, -c.cost, now, op.rollback)
    end
  end
  return now
end
