-- What algorithms share to read and write their states, and to note what is wrong with them.
local states = {}

local byte, char, format, rep, ceil, min = string.byte, string.char, string.format, string.rep, math.ceil, math.min
local AT_ONCE = 100
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
function states.damage(c) states.add_note(char(c.number, DAMAGE)) end

-- Notes the time at which a charge is recorded.
function states.record(c, at) states.add_note(pack('<BBd', c.number, RECORDED, at)) end

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
-- groups are in the order of these times. Groups whose time has come are left out; list.ended is the last of them. A state with a time after
-- last is damaged. names.layout is the newest layout, if it is not LAYOUT. Numbers are parsed AT_ONCE groups at a time, because Lua's stack
-- holds only a few thousand.
function states.read_groups(c, state, names, now, last)
  local list, count = {}, #names
  state = state and states.current(c, state, 8 * count, names.layout) or ''
  for from = 2, #state, 8 * count * AT_ONCE do
    local numbers = { parse('<' .. rep('d', min(count * AT_ONCE, (#state + 1 - from) / 8)), state, from) }
    for i = 1, #numbers - count, count do -- the last number is where the parsing ended
      local group, sound = {}, true
      for k = 1, count do
        local x = numbers[i + k - 1]
        group[names[k]] = x
        sound = sound and x >= 0 and x % 1 == 0 and x < 2 ^ 53
      end
      local time = group[names.time]
      if not sound or time > last then
        states.damage(c)
        return {}
      end
      if time > now then list[#list + 1] = group else list.ended = group end
    end
  end
  return list
end

-- Writes at most a hundred such groups to a key, which expires after the last group's time. If there are no groups, it deletes the key.
function states.write_groups(key, list, names)
  if not list[1] then return call('DEL', key) end
  local numbers = {}
  for _, group in ipairs(list) do
    for k = 1, #names do numbers[#numbers + 1] = group[names[k]] end
  end
  states.set(key, HEAD .. pack('<' .. rep('d', #numbers), unpack(numbers)), list[#list][names.time])
end

-- The function reserves of states that keep no places.
function states.at_once(c, now, at) return at <= now end
