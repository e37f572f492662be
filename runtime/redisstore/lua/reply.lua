-- The reply to a call is one of
--   time     the call was admitted or adjusted now, at this time, and there is nothing else to report
--   -time    nothing was done: send the call again, with the calendar windows that hold at this time
--   entries  each has the number of a claim, or 0 for the whole call; then its own kind; then numbers:
--     REFUSAL   the rule refuses the claim: now; the earliest time
--     PRICE     in a decision, how much longer than usual the charge of a warm-up lasts, and the stored time that it used up; in an
--               adjustment, by how much the debt would last too long, and 0
--     QUOTA     the room; when all permits are back; when more than the room is there; the permits used if a trigger fires, or else 0
--     DAMAGE    a state of the claim is damaged, and counts as none
--     RECORDED  the time at which the charge is recorded, if it is not the time of the call; 0 for a known member, which costs nothing
--     ADMITTED  the call is admitted or adjusted: now; when it is admitted, or when its lease ends; the permits that it took from each rule if
--               it has an amount, or else 0
--     OTHER     the call is not admitted: now; when to ask again, or 0; 0. This entry may be missing if a rule refuses the call
--     BLOCKED   an earlier refusal blocks the subject of the claim
--     PAUSED    when the pause of the subject of the claim ends
--     DELAY     the rule delays the claim: the earliest time
local reply = {}
local max = math.max

-- Returns an entry with what a claim has left. In a block and in a pause nothing is left until it ends.
local function quota(c, i, now, grows)
  local room, full = c.is.room(c, now), c.is.full(c, now)
  if c.block_key and c.refused and (c.blocked_until or not grows) then room = 0 end
  local held = max(now, c.block_end or 0, c.paused_until or 0)
  local more = c.is.more(c, held > now and 0 or max(0, room), now)
  return pack('<BBdddd', i, QUOTA, room, full, max(held, more), c.fired or 0)
end

-- Returns the reply to a call. The parameter at is when the call is admitted, or when to ask again. It is 0 if the call is refused.
function reply.of(claims, now, at, admitted, taken)
  local entries = notes or ''
  for i = 1, #claims do
    local c = claims[i]
    if c.refused then
      entries = pack('<BBdd', i, REFUSAL, now, c.earliest) .. entries
    elseif at ~= now and c.earliest > now then
      entries = pack('<BBd', i, DELAY, c.earliest) .. entries
    end
    if claims.report or c.fired or c.refused and (c.cost > 1 or c.is.counts_running) then
      entries = quota(c, i, now, claims.grows) .. entries
    end
    if c.blocked_until then entries = string.char(i, BLOCKED) .. entries end
    if c.paused_until then entries = pack('<BBd', i, PAUSED, c.paused_until) .. entries end
  end
  if at == 0 and not claims.refused then return entries end
  if entries == '' and admitted and at == now and not taken then return now end
  return pack('<BBddd', 0, admitted and ADMITTED or OTHER, now, at, taken or 0) .. entries
end

-- Returns the reply to a plain call that was admitted, if there is more to say than the time.
function reply.of_plain(claims, now)
  for _, c in ipairs(claims) do
    complete(c.is, 'room')
    c.refused = false
  end
  return reply.of(claims, now, now, true)
end
