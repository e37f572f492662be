-- Decides the calls that decide_plain cannot decide: see run.lua. It charges all rules of a call or none.

local decide = {}
local reply_of = use('reply').of
local max, min = math.max, math.min

-- Reports whether a sum of powers of two has one of them.
local function includes(sum, power) return sum % (2 * power) >= power end

decide.includes = includes

-- Sets the texts that the claims of a call have of their own, from its second argument.
function decide.set_texts(claims, second)
  local from = claims.up_to and 9 or claims.leases and 17 or 1
  for _, c in ipairs(claims) do
    if c.has_text then c.text, from = parse('s', second, from) end
  end
end

-- Sets the other keys of a claim, which begin at keys[k], and returns the index of the next key.
function decide.set_keys(c, keys, k)
  if includes(c.has, FREE) then c.free_key, k = keys[k], k + 1 end
  if includes(c.has, BLOCK) then c.block_key, k = keys[k], k + 1 end
  if includes(c.has, PAUSE) then c.pause_key, k = keys[k], k + 1 end
  return k
end

-- Loads what only charges need, for all claims, so that a later layout is found before the first write.
local function load(claims, now)
  for i = 1, #claims do
    local c = claims[i]
    if c.load then c.load(c, now) end
  end
end

-- Makes what plain calls do not need: all parts of the algorithms' files, and the list of the claims in enforce mode.
local function complete_all(claims)
  if claims.enforced then return end
  claims.enforced = {}
  for _, c in ipairs(claims) do
    complete(c.is)
    if c.mode == ENFORCE then table.insert(claims.enforced, c) end
  end
end

-- Notes whether each rule refuses its claim. Returns when all rules admit the call, whether a rule refuses it, and whether a rule lets it
-- wait.
local function note(claims, now)
  local at, refused, waits = now, claims.refused, false
  for i = 1, #claims do
    local c = claims[i]
    if c.mode == TRIGGER then c.earliest, c.fired = now, false end
    if c.pause_key then use('pause').note(c, now) end
    c.refused = c.earliest > now + c.wait
    if c.block_key then use('block').note(c, now) end
    if c.earliest > now and c.mode == ENFORCE then
      at, refused, waits = max(at, c.earliest), refused or c.refused, waits or c.wait > 0
    end
  end
  return at, refused, waits
end

-- Looks for a place for a call that cannot be admitted now, if its rules let it wait. Returns the time of the place, or when to ask again;
-- whether the call is admitted; and whether a rule refuses it.
local function place(claims, now, at, refused)
  local free, before = use('places').free_place(claims, now), nil
  if free then
    for _, c in ipairs(claims.enforced) do c.refused = false end
    return free, true, false
  end
  while at ~= before and not refused do -- a rule that admits the call now may refuse it at a later time
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

-- Begins the blocks of the rules that refuse the call. Then it looks for rules that admit the call now, but not when the others do: by then they
-- no longer know its member. So these refuse the call, too.
local function refuse(claims, now)
  if not claims.grows then use('block').begin(claims, now) end
  local at, before = now, nil
  for _, c in ipairs(claims.enforced) do
    if c.refused then at = max(at, c.earliest) end
  end
  while at ~= before do
    before = at
    for _, c in ipairs(claims.enforced) do
      local earliest = c.known and not c.refused and c.is.earliest(c, c.cost, now, at) or at
      if earliest > at then at, c.earliest, c.refused = earliest, earliest, true end
    end
  end
end

-- Returns how many permits a call may take from each rule. Marks each rule in shadow mode that has fewer as refusing.
local function up_to(claims, now, most)
  local n = most
  for _, c in ipairs(claims.enforced) do n = min(n, max(0, c.is.room(c, now))) end
  for _, c in ipairs(claims) do
    if c.mode == SHADOW and c.is.room(c, now) < n then
      c.refused, c.earliest = true, c.is.earliest(c, min(n, c.limit), now, now)
    end
  end
  return n
end

-- Charges one rule. A rule in shadow or trigger mode counts now, even if the call waits.
local function charge(c, n, now, at)
  if c.mode == ENFORCE then
    if at == now or not use('places').take(c, now, at) then c.commit(c, n, now, at) end
    return
  end
  local room = c.mode == TRIGGER and c.is.room(c, now) or 0
  c.fired = not c.known and room > 0 and room <= n and c.limit - room + n or nil -- a known member costs nothing
  c.commit(c, n, now, now)
end

-- Charges the rules of a call that is admitted. Returns how many permits the call took from each rule, if it has an amount; and when it
-- is admitted, or when its lease ends.
local function commit(claims, now, at, amount)
  load(claims, now)
  if claims.leases then return use('lease').take(claims, now, parse('<dd', amount)) end
  local taken = claims.up_to and up_to(claims, now, (parse('<d', amount)))
  for _, c in ipairs(claims) do
    if not c.refused then charge(c, taken or c.cost, now, at) end
  end
  return taken, at
end

-- Decides any other call.
function decide.any(claims, now, amount)
  complete_all(claims)
  local at, refused, waits = note(claims, now)
  local admitted, taken = at == now and not refused, nil
  local paused = claims.pausable and use('pause').paused_until(claims)
  if paused then
    at, admitted = paused, false -- no place is kept in a pause
  elseif waits and not claims.refused then
    at, admitted, refused = place(claims, now, at, refused)
  end
  if refused then
    at = 0
    refuse(claims, now)
  elseif admitted and not claims.peek then
    taken, at = commit(claims, now, at, amount)
  end
  return reply_of(claims, now, at, admitted, taken)
end

-- Answers tools: the numbers of engine.Sight; when permits were taken and for when calls wait, and the free places, both as times and permits in
-- turn; and the state of running calls. It tells MOST_TOLD charges before the newest ones, which have been told: c.wait says how many these
-- are. It writes nothing.
local function look(c, now)
  local function text_of(each)
    local list = {}
    if each then each(c, now, function(at, n) list[#list + 1] = pack('<dd', at, n) end) end
    return table.concat(list)
  end
  local earliest = c.earliest
  if c.block_key then use('block').note(c, now) end
  if c.pause_key then use('pause').note(c, now) end
  return {
    pack('<ddddddd', now, earliest, c.is.room(c, now), c.is.full(c, now), c.blocked_until or 0, c.block_length or 0, c.paused_until or 0),
    text_of(c.is.charges), text_of(c.is.interval and not c.prepaid and use('places').each), c.is.calls and c.is.calls(c) or '',
  }
end

-- Changes what an admitted call was charged. A positive cost of a claim is taken, even beyond the limit. A negative cost is given back.
function decide.adjust(claims, now)
  complete_all(claims)
  if claims.peek then return look(claims[1], now) end
  load(claims, now)
  for _, c in ipairs(claims) do
    if c.pause_key then
      use('pause').change(c, now)
    elseif c.cost > 0 then
      local charge = c.is.charge or c.commit
      charge(c, c.cost, now, now)
    elseif claims.gives then
      local give = c.is.give or c.is.give_back
      give(c, -c.cost, now, now)
    elseif c.free_key and c.wait > now and c.is.is_last_charge then
      use('places').give_back(c, -c.cost, now)
    else
      c.is.give_back(c, -c.cost, now, c.wait, claims.rollback)
    end
  end
  return reply_of(claims, now, now, true)
end
