-- The list of jobs: live, a fold for each, keys; questions of jobs; a job that says very much.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

kit.start('README.md')
local go = kit.folder .. '/go'
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
  { waitFor = { go, 60 } },
  { flood = 20000 },
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

-- 20,000 events as fast as they come: the editor answers all the while.
vim.fn.writefile({}, go)
local begun, worst, last = vim.uv.hrtime(), 0, vim.uv.hrtime()
local timer = assert(vim.uv.new_timer())
timer:start(0, 10, function()
  local at = vim.uv.hrtime()
  worst, last = math.max(worst, at - last), at
end)
check(
  'its last state is shown',
  90,
  function() return board():find('succeeded', 1, true) and board():find('1 file, +1 −0', 1, true) end
)
timer:stop()
io.stdout:write(('# %.1f s; the longest pause was %.0f ms\n'):format((vim.uv.hrtime() - begun) / 1e9, worst / 1e6))
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
