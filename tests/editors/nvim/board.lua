-- The list of jobs: live, a fold for each, keys; questions of jobs; a job that says very much.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

kit.start('README.md')
local go, stop = kit.folder .. '/go', kit.folder .. '/stop'
vim.cmd('Pactify jobs')
local window = vim.api.nvim_get_current_win()
check(
  'without a job it says how to start one',
  10,
  function() return kit.text_of(window):find('No job here', 1, true) end
)
local function board() return kit.text_of(window) end
vim.cmd.wincmd('p')
kit.open_brief('flood', 'Say very much', {
  { waitFor = { go, 600 } },
  { chatter = { perSecond = 10000, ['until'] = stop, seconds = 600 } },
  { write = { path = 'a.txt', content = 'a\n' } },
  { say = 'The last word.' },
})
vim.cmd('Pactify delegate')
check(
  'a job appears by itself',
  20,
  function() return board():find('running', 1, true) and board():find('Say very much', 1, true) end
)
vim.api.nvim_set_current_win(window)
vim.api.nvim_win_set_cursor(window, { 1, 0 })
now('folded', vim.fn.foldclosed(1) == 1 and vim.fn.foldclosedend(1) == vim.api.nvim_buf_line_count(0))
kit.press('<CR>')
now('until it is opened', vim.fn.foldclosed(1) == -1)
now('then it tells more', board():find('base     head', 1, true))
kit.press('p')
now('a key that does not fit says so', heard('this job is running: there is nothing to preview'))

-- Ten thousand events a second: the list is asked for twice in one at most, and every key is taken all the while.
local client, status = require('pactify.client'), require('pactify.protocol').request.status
local request, asked, keys = client.request, 0, 0
local begun = vim.uv.hrtime()
client.request = function(method, ...)
  asked = asked + (method == status and 1 or 0)
  return request(method, ...)
end
vim.fn.writefile({}, go)
check('what it says is shown', 60, function() return board():find('message %d') end)
vim.cmd('topleft new')
local seen = asked
check('it is looked at again and again', 120, function()
  kit.press('ax<Esc>')
  keys = keys + 1
  return asked - seen >= 5
end)
now('every key was taken meanwhile', vim.api.nvim_get_current_line() == ('x'):rep(keys))
vim.cmd('bwipeout!')
vim.fn.writefile({}, stop)
check(
  'its last state is shown',
  120,
  function() return board():find('succeeded', 1, true) and board():find('1 file, +1 −0', 1, true) end
)
local seconds = (vim.uv.hrtime() - begun) / 1e9
io.stdout:write(('# asked for %d times in %.1f s\n'):format(asked, seconds))
now('it was asked for no oftener than twice a second', asked <= 2 * seconds + 3)
client.request = request
vim.api.nvim_set_current_win(window)
now('the fold stayed open', vim.fn.foldclosed(1) == -1)
now('and the cursor where it was', vim.api.nvim_win_get_cursor(window)[1] == 1)
kit.press('L')
check('what it did can be read', 10, function()
  local log = kit.windows('pactify://log/')[1]
  return log and kit.text_of(log):find('## What it was asked', 1, true)
end)
kit.press('q')
vim.api.nvim_set_current_win(window)
kit.press('g?')
now('the keys are told', vim.api.nvim_get_current_line():find('*pactify-jobs*', 1, true))
vim.cmd.close()
vim.api.nvim_set_current_win(window)
kit.answers = { 'Discard it' }
kit.press('D')
check('a job is discarded', 30, function() return heard('discarded "Say very much"') end)
check('and leaves the list', 10, function() return board():find('No job here', 1, true) end)
kit.press('=')
check('where decided ones can be shown', 10, function() return board():find('discarded', 1, true) end)
kit.leave()
