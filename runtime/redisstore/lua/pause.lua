-- A pause holds the calls of a subject. The state is a string: LAYOUT, and when the pause ends.
local pause = {}
local states = use('states')
local max = math.max

local NAMES = { 'stop', time = 'stop' }

-- Notes in a claim until when its subject is paused, if it is.
function pause.note(c, now)
  local state = call('GET', c.pause_key)
  local found = state and states.read_groups(c, state, NAMES, now, now + HORIZON)[1]
  c.paused_until = found and found.stop
  if found then c.earliest = max(c.earliest, found.stop) end
end

-- Returns when the last pause of a call ends, or nil.
function pause.paused_until(claims)
  local stop
  for _, c in ipairs(claims.enforced) do
    if c.pause_key and c.paused_until then stop = max(stop or 0, c.paused_until) end
  end
  return stop
end

-- Begins, replaces or ends the pause of a claim's subject. In an adjustment of pauses, cost is how long the pause is, and wait is 1 if it
-- replaces another one.
function pause.change(c, now)
  if c.cost < 0 then return call('DEL', c.pause_key) end
  pause.note(c, now)
  local stop = now + c.cost
  if c.wait == 1 or not c.paused_until or stop > c.paused_until then states.set(c.pause_key, HEAD .. pack('<d', stop), stop) end
end
