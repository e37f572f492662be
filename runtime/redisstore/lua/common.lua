-- Everything that the algorithms share. All times are in whole microseconds. All numbers of a state are integers, stored as little-endian
-- doubles. A claim is a table:
--
--   number            of the claim in its call
--   kind, mode        numbers, as in package engine. Kinds have names here, such as TOKEN_BUCKET
--   limit, cost       permits; in an adjustment, cost is how many to take, or below 0 to give back; see also pause.change
--   a, b, text        values that the algorithm needs; see its file
--   has_text          whether its text differs between the claims of one rule. It is then sent in the second argument: see claims.lua
--   wait              how long the rule may delay the call; in an adjustment, the time of the charge; see also look in decide.lua
--   has               which keys it has besides its state: a sum of FREE, BLOCK and PAUSE; in an adjustment also of LEASE, if the rule has
--                     a lease
--   key               the key of the state
--   free_key          the key of its free places, if the call may wait, or if it adjusts a charge that may be a place
--   block_key         the key of the subject's block, if the rule has blocks; see block.lua
--   pause_key         the key of the subject's pause, if the rule has pauses; see pause.lua
--   block, block_most how long a refusal blocks the subject, and the longest block if blocks double, or else 0
--
-- An algorithm is a table of functions with the names of the methods of engine.State. Besides them it has check, and it may have prepare,
-- load, ends and charges. It may lack charge and give.
--
--   prepare           computes what is the same for all subjects of a rule
--   check             loads the state into the claim. It returns the earliest time, and CHANGED if the state was converted to another limit
--                     and is to be written, or OTHER_WINDOW if the caller sent the wrong calendar window, so that it must send the call
--                     again with the window that holds now
--   load              loads what only a charge needs
--   room              returns how many permits are left, below 0 if more are used than the limit
--   charge            charges permits even beyond the limit. If it is missing, commit does so; rules that count members are never settled
--   give              gives back permits, the newest ones that are no places. If it is missing, give_back does so
--   charges           tells when permits were taken, and for when calls wait: it calls tell with a time and a number of permits, in the order
--                     of times. See look in decide.lua
--   calls             returns the state of calls that run
--   ends              returns the end of the present window, at which a lease ends at the latest. If it is missing, the permits of a lease
--                     are recorded at the lease's end
--
-- An algorithm may have these properties:
--
--   counts_running    a refusal says how many permits are left
--
-- All claims of a call are checked and loaded before the first write. So if a key has another type or a later layout, the whole call fails
-- and charges nothing.
--
-- Layouts: a state that is a string begins with the byte LAYOUT. Older programs wrote the numbers without that byte, so the length of their
-- states is a multiple of 8. The next write of such a state adds the byte. A later layout has a greater first byte, below LAYOUTS, and a
-- length that is not a multiple of 8. A list has no such byte: its layout is the length of its elements, which is 8. A call that finds a
-- later layout fails.
--
-- Damage: a state with an invalid length, or with numbers that no program writes, counts as none.

local CHANGED, OTHER_WINDOW = 1, 2 -- see check
local LAYOUTS = 32
local HEAD = '\1' -- LAYOUT as a byte
local HORIZON = 3661 * DAY -- a call waits for at most 3660 days, and the clock may be set back by a day

-- EVALSHA makes all functions and tables anew in each run, so a run makes only what its calls need. The file of a module runs when a call
-- first uses the module: see use. The files of some algorithms have three parts. The first has all that a plain call needs: see claims.lua.
-- The second has room, full and more, which a report needs, and the third the rest. The function complete runs them. The table of such a file
-- is made with all names that plain calls look up, because Lua takes longer for a table that grows.
--
-- Names in capitals are constants: those that a file defines, those of package engine, which are in constants.go there, and those of
-- codec.go. lua.go writes their values in their place, and makes the functions use and make_others of the files.

local call, pack, parse -- a library cannot look these up while it loads, so the first run does

local used = {} -- the modules that were used
local use -- returns the table that the file of a module defines. It runs that file if no call used the module before

local notes -- the last entries of the reply, if there are any: see reply.lua

local shared = {} -- what the calls of a run read and share, by key. After a call that failed nothing is shared, as it may not have been written

-- Returns a module. It first runs the parts of the module's file that have not run yet: all of them, or up to the one with a function of
-- the given name.
local function complete(module, name)
  while module.make_others and not (name and module[name]) do
    local make = module.make_others
    module.make_others = nil
    make()
  end
  return module
end
