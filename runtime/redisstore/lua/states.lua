-- What algorithms share to read and write their states, and to note what is wrong with them.
local states = {}

local byte, char, format, ceil = string.byte, string.char, string.format, math.ceil
local whole = format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f' -- %d is faster, but has only 32 bits on some servers

-- Returns n as text that Redis reads as an integer.
local function integer(n) return format(whole, n) end

-- Makes a key expire a second after its state ceases to count. A run uses the time at which it began, but the server's own time goes on,
-- even while its process is stopped. If the expiry has passed by then, Redis 7.0 deletes the key at once. The extra second prevents that,
-- unless the run takes longer. By then the callers have given up.
function states.expire(key, at) call('PEXPIREAT', key, format(whole, ceil(at / 1000) + 1000)) end

function states.set(key, state, expiry) call('SET', key, state, 'PXAT', format(whole, expiry / 1000 + 1)) end

states.integer = integer

-- Reports whether a number is a whole number from 0 to 2^53 - 1. NaN and infinity are not.
function states.valid(x) return x >= 0 and x % 1 == 0 and x < 2 ^ 53 end

function states.add_note(entry) notes = (notes or '') .. entry end

-- Notes that the state of a claim is damaged.
function states.damage(c) states.add_note(char(c.number, 4)) end

-- Notes the time at which a charge is recorded.
function states.record(c, at) states.add_note(pack('<BBd', c.number, 5, at)) end

function states.fail_later_layout(layout, known) error('later layout ' .. layout .. ' ' .. known, 0) end

-- Returns a state with a layout up to the newest one, which is LAYOUT if it is missing: the byte, and then groups of the given number of
-- bytes. Returns nothing if the state is damaged.
function states.current(c, state, group, newest)
  local length, layout = #state, byte(state)
  newest = newest or LAYOUT
  if length % group == 1 and length > 1 and layout >= LAYOUT and layout <= newest then return state end
  if length % group == 0 and length > 0 then return HEAD .. state end
  if length % 8 > 0 and layout > newest and layout < LAYOUTS then states.fail_later_layout(layout, newest) end
  states.damage(c)
end

-- Returns the groups of numbers in a state, each as a table with the given names. names.time names the number that is the group's time; the
-- groups are in the order of these times. Groups whose time has come are left out. A state with a time after last is damaged. names.layout
-- is the newest layout, if it is not LAYOUT.
function states.read_groups(c, state, names, now, last)
  local list, size = {}, 8 * #names
  state = state and states.current(c, state, size, names.layout) or ''
  for from = 2, #state, size do
    local group, sound = {}, true
    for i, name in ipairs(names) do
      group[name] = parse('<d', state, from + 8 * (i - 1))
      sound = sound and states.valid(group[name])
    end
    local time = group[names.time]
    if not sound or time > last then
      states.damage(c)
      return {}
    end
    if time > now then table.insert(list, group) end
  end
  return list
end

-- Writes such groups to a key, which expires after the last group's time. If there are no groups, it deletes the key.
function states.write_groups(key, list, names)
  if not list[1] then return call('DEL', key) end
  local state = { HEAD }
  for _, group in ipairs(list) do
    for _, name in ipairs(names) do table.insert(state, pack('<d', group[name])) end
  end
  states.set(key, table.concat(state), list[#list][names.time])
end

-- The function reserves of states that keep no places.
function states.at_once(c, now, at) return at <= now end
