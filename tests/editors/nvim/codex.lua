-- The way of a job from its brief to an undone apply, and the end of one whose command runs long, with the real codex:
-- its provider plays `write`, and `wait` once the configuration says so. What else a person does: flow.lua, review.lua.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

--- Seconds for whatever takes a process, on a machine that may be busy.
local patience = 120

local function numbers(changes)
  local lines = {}
  for number = 1, 30 do
    lines[number] = changes[number] or 'line ' .. number
  end
  return table.concat(lines, '\n') .. '\n'
end
local old, part, new = numbers({}), numbers({ [3] = 'three' }), numbers({ [3] = 'three', [28] = 'twenty-eight' })

--- Whether this is on the disk.
local function is(text, greeting)
  return function() return kit.on_disk('numbers.txt') == text and kit.on_disk('greeting.txt') == greeting end
end

local source = kit.start('numbers.txt')
kit.open_brief('write', 'Change two numbers', {})
vim.cmd('Pactify delegate')
check('codex ends', patience, function() return heard('Change two numbers: changed 2 files') end)
now('nothing is in the checkout yet', is(old)())

-- Preview.
vim.cmd.buffer(source)
kit.answers = { 'Change two numbers' }
vim.cmd('Pactify preview')
check('the preview opens', patience, function() return #vim.api.nvim_tabpage_list_wins(0) == 3 end)
local windows = vim.api.nvim_tabpage_list_wins(0)
now('the list names both files', vim.fn.search('A greeting.txt', 'w') > 0 and vim.fn.search('M numbers.txt', 'w') > 0)
vim.api.nvim_set_current_win(windows[1])
kit.press('<CR>')
check(
  'what codex did is shown',
  patience,
  function() return kit.text_of(windows[2]) == old and kit.text_of(windows[3]) == new end
)

-- Apply one part, then the rest.
vim.api.nvim_set_current_win(windows[3])
vim.api.nvim_win_set_cursor(windows[3], { 3, 0 })
kit.press('a')
kit.answers = { 'Apply what is accepted: 1 file(s), 1 change(s)' }
vim.cmd('Pactify apply-selected')
check('one part is applied', patience, function() return heard('applied 1 file(s)') end)
now('and no more than that', is(part)())
kit.answers = { 'Apply all of it: 2 file(s)' }
vim.cmd('Pactify apply')
check('the rest is applied', patience, function() return heard('applied 2 file(s)') end)
now('and is on the disk', is(new, 'hello\n')())

-- Undo.
vim.cmd('Pactify undo')
check('the second apply is undone', patience, function() return heard('undone, 2 file(s) are as before') end)
now('the first still stands', is(part)())
vim.cmd('Pactify undo')
check('it is undone, too', patience, function() return heard('undone, 1 file(s) are as before') end)
now('the files are as before', is(old)())

-- Cancel.
local config = vim.env.XDG_CONFIG_HOME .. '/pactify/config.toml'
local function waiting(line) return (line:gsub('/s/write/', '/s/wait/')) end
vim.fn.writefile(vim.tbl_map(waiting, vim.fn.readfile(config)), config)
vim.cmd.tabclose()
vim.cmd.buffer(source)
kit.open_brief('wait', 'Take your time', {})
vim.cmd('Pactify delegate')
vim.cmd('Pactify jobs')
local board = vim.api.nvim_get_current_win()
check('its command runs', patience, function() return kit.text_of(board):find('Take your time.*sleep 3001') end)
vim.cmd.close()
kit.answers = { 'Take your time' }
vim.cmd('Pactify cancel')
check('it is cancelled', patience, function() return heard('Take your time: cancelled') end)
kit.leave()
