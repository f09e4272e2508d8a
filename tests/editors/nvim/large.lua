-- A result of ten thousand files: it opens, is marked and moved through, while the editor goes on answering.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now = kit.check, kit.now

--- A frozen editor; loading a busy machine's page of a result takes far less.
local most_pause = 5000

kit.start('README.md')
kit.finish('Write ten thousand files', {
  { run = 'mkdir many; for n in $(seq 10000); do echo $n > many/$n.txt; done' },
  { say = 'Done.' },
})
local worst, last, timer = 0, vim.uv.hrtime(), assert(vim.uv.new_timer())
timer:start(0, 5, function()
  local at = vim.uv.hrtime()
  worst, last = math.max(worst, (at - last) / 1e6), at
end)
kit.answers = { 'ten thousand' }
vim.cmd('Pactify preview')
check('the preview opens', 120, function() return #vim.api.nvim_tabpage_list_wins(0) == 3 end)
local list = vim.api.nvim_tabpage_list_wins(0)[1]
now('with every file', vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(list)) > 10000)
vim.api.nvim_set_current_win(list)
vim.cmd('normal! G')
kit.press('x')
check('its last file is rejected', 10, function() return vim.api.nvim_get_current_line():find('✗', 1, true) end)
timer:stop()
io.stdout:write(('# the longest pause was %.0f ms\n'):format(worst))
now('nothing froze', worst < most_pause)
kit.leave()
