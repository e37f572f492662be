-- Decides one call: checks all its rules first, and then charges all of them or none.

local PLAIN = {} -- the operation of a call without flags

local KINDS = { sliding_window, window, window, bucket, bucket, warmup, sliding_counter, distinct, distinct }

-- Asks one rule when it admits its claim. Returns nothing, or the time for which the caller must tell the calendar window.
local function check(c, now, up_to)
  local unknown = c.is.read(c, now)
  c.earliest = now
  if unknown or c.mode == TRIGGER then return unknown end
  local cost = c.cost
  if up_to then c.cost = 1 end
  local earliest = c.is.earliest(c, now, now)
  c.cost = cost
  if earliest > now then
    c.earliest = earliest
    if earliest > now + c.wait then c.refused = true end
  end
  if c.blocked then
    local state = call('GET', c.blocked)
    local stop = state and #state == 8 and parse('<d', state) or 0
    if stop > now and valid(stop, 0, 0) then
      c.until_, c.earliest, c.refused = stop, max(earliest, stop), true
    end
  end
end

-- Finds the time for which a call that cannot be admitted now is charged, if its rules give it the time to wait. Returns that time,
-- or when to ask again, and whether the call is admitted.
local function place(claims, now, at, admitted)
  local free = free_place(claims, now)
  if free then
    for _, c in ipairs(claims) do
      if c.mode == ENFORCE then c.refused = false end
    end
    return free, true
  end
  local moved = admitted
  while moved and admitted do -- a window in which the call fits now may be full by then
    moved = false
    for _, c in ipairs(claims) do
      local earliest = c.mode == ENFORCE and c.is.earliest(c, now, at) or at
      if earliest > at then
        at, c.earliest, c.refused, moved = earliest, earliest, earliest > now + c.wait, true
        admitted = admitted and not c.refused
      end
    end
  end
  for _, c in ipairs(claims) do
    admitted = admitted and (c.mode ~= ENFORCE or c.is.reserves(c, now, at))
  end
  return at, admitted
end

-- Returns how many permits a call may take of each rule, and refuses them to the shadows that do not have so many.
local function available(claims, now)
  local n = claims[1].cost
  for _, c in ipairs(claims) do
    if c.mode == ENFORCE then n = min(n, c.is.room(c, now)) end
  end
  for _, c in ipairs(claims) do
    if c.mode == SHADOW then
      local cost = c.cost
      c.cost = min(n, c.limit)
      if c.kind == SLIDING then c.text = integer(c.cost - c.limit - 1) end
      c.is.read(c, now)
      c.earliest = c.is.earliest(c, now, now)
      c.cost = cost
      c.refused = c.is.room(c, now) < n
    end
  end
  return n
end

-- Charges one rule, and reports whether there is anything to tell of it.
local function charge(c, n, now, at)
  if c.mode == ENFORCE and at > now and take_place(c, at, n) then return false end
  if c.mode ~= ENFORCE then at = now end -- rules that only watch count when the call is decided
  local room = c.mode == TRIGGER and c.is.room(c, now) or 0
  if c.is.commit(c, n, now, at) and room > 0 and room <= n then c.fired = c.limit - room + n end
  return c.fired or c.extra
end

-- Begins the block that follows from a refusal.
local function refuse(c, now, peek)
  if not c.refused or not c.blocked or c.until_ then return end
  c.earliest = max(c.earliest, now + c.block)
  c.until_ = now + c.block
  if not peek then set(c.blocked, pack('<d', c.until_), c.until_) end
end

-- Says what a rule has to tell of a decision, or nothing. An entry is the number of the rule, 1 if it refuses, the earliest time, the
-- room, when all permits are there again, and the permits used if a trigger fires; or the number, 2 and the price of a warm-up.
local function tell(i, c, now, report)
  local entry, room, full = '', 0, 0
  if report or c.refused and c.cost > 1 then
    room, full = c.is.room(c, now), c.is.full(c, now)
  end
  if c.until_ then room = 0 end
  if report or c.refused or c.fired then
    entry = pack('<BBdddd', i, c.refused and 1 or 0, c.earliest, room, full, c.fired or 0)
  end
  if c.extra and c.extra + c.used_up > 0 then
    entry = entry .. pack('<BBdddd', i, 2, c.extra, c.used_up, 0, 0)
  end
  return entry
end

-- The reply is one of
--   time     admitted now, which is that time, and there is nothing to tell
--   -time    nothing was done: ask again, and tell the calendar windows that hold this time
--   text     1 if the call is admitted, else 0; now; when it is admitted, or when to ask again if no rule refuses; the permits that
--            each rule was charged by a call that takes up to a cost; then what each rule has to tell
local function decide(claims, now, op)
  local at, admitted = now, not op.refused
  for i = 1, #claims do
    local c = claims[i]
    local unknown = check(c, now, op.up_to)
    if unknown then return -unknown end
    if c.mode == ENFORCE then
      if c.refused then admitted = false end
      if c.earliest > at then at = c.earliest end
    end
  end
  if at > now and not op.refused then at, admitted = place(claims, now, at, admitted) end
  local taken, tells = 0, op ~= PLAIN or not admitted or at > now
  if admitted and not op.peek then
    if op.up_to then taken = available(claims, now) end
    for i = 1, #claims do
      local c = claims[i]
      if c.refused or charge(c, op.up_to and taken or c.cost, now, at) then tells = true end
    end
  elseif not admitted then
    for _, c in ipairs(claims) do refuse(c, now, op.peek) end
  end
  if not tells then return now end
  local reply = pack('<Bddd', admitted and 1 or 0, now, at, taken)
  for i, c in ipairs(claims) do reply = reply .. tell(i, c, now, op.report) end
  return reply
end

-- Changes what an admitted call was charged: takes so many permits beyond the limit, or gives so many back if they are negative.
local function adjust(claims, now, op)
  for _, c in ipairs(claims) do
    local unknown = c.is.read(c, now)
    if unknown and c.cost > 0 then return -unknown end
  end
  for _, c in ipairs(claims) do
    if c.cost > 0 then
      c.is.charge(c, c.cost, now)
    else
      give_back(c, -c.cost, now, op.rollback)
    end
  end
  return now
end
