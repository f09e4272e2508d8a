-- Two Neovims on one repository; a server that is restarted, or dies, in the middle of a job.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

local source = kit.start('README.md')
local there, leave = kit.another()
there('vim.notify = function() end vim.cmd.edit("README.md") vim.cmd("Pactify jobs")')
local function there_shown()
  return there('return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr("pactify://jobs"), 0, -1, false), "\\n")')
end
check('another Neovim shows its jobs', 20, function() return there_shown():find('No job here', 1, true) end)

local go = kit.folder .. '/go'
kit.open_brief('one', 'Seen by both', {
  { waitFor = { go, 600 } },
  { write = { path = 'README.md', content = '# Sample\n\nSeen by both.\n' } },
  { say = 'Done.' },
})
vim.cmd('Pactify delegate')
check(
  'the other one shows the job',
  20,
  function() return there_shown():find('running', 1, true) and there_shown():find('Seen by both', 1, true) end
)

-- Restarts.
local function client() return vim.lsp.get_clients({ name = 'pactify', bufnr = source })[1] end
local first = client().id
vim.cmd('Pactify restart')
check('a new server is attached', 20, function() return client() and client().id ~= first and client().initialized end)
check(
  'which reports the job that goes on',
  20,
  function() return require('pactify').statusline():find('Seen by both', 1, true) end
)
-- However long the suite takes, these deaths are close together.
local now_and_then = os.time()
os.time = function() return now_and_then end
for _ = 1, 3 do
  local before = client().id
  kit.signal('sigkill')
  check(
    'a server that dies is started again',
    30,
    function() return client() and client().id ~= before and client().initialized end
  )
end
now('and that is told', heard('the server died and is started again; your jobs go on'))
vim.cmd('Pactify jobs')
local list = vim.api.nvim_get_current_win()
check('the list is live', 20, function() return kit.text_of(list):find('Seen by both', 1, true) end)
kit.signal('sigkill')
check('one that keeps dying is not', 30, function() return heard('the server died again; your jobs go on') end)
require('pactify.board').refresh()
vim.wait(1500)
now('nor by the list that looks by itself', #vim.lsp.get_clients({ name = 'pactify' }) == 0)
vim.cmd('Pactify jobs')
check('but by a command', 30, function()
  local started = vim.lsp.get_clients({ name = 'pactify' })[1]
  return started and started.initialized
end)
vim.cmd.close()
vim.cmd.buffer(source)
vim.cmd('Pactify restart')
check('or when it is asked for', 30, function() return client() and client().initialized end)
check('the job goes on', 20, function() return require('pactify').statusline():find('Seen by both', 1, true) end)
vim.fn.writefile({}, go)
check('to its end', 60, function() return heard('Seen by both: changed 1 file') end)

-- One applies, the other shows it.
check('both see the end', 20, function() return there_shown():find('succeeded', 1, true) end)
kit.answers = { 'Seen by both', 'Apply all of it' }
vim.cmd.buffer(source)
vim.cmd('Pactify preview')
check('the preview opens', 20, function() return #vim.api.nvim_tabpage_list_wins(0) == 3 end)
vim.cmd('Pactify apply')
check('one applies', 20, function() return kit.on_disk('README.md'):find('Seen by both', 1, true) end)
check(
  'the other shows the new text',
  20,
  function()
    return there('return vim.api.nvim_buf_get_lines(vim.fn.bufnr("README.md"), 2, 3, false)[1]') == 'Seen by both.'
  end
)
check('and that the job is decided', 20, function() return there_shown():find('No job here', 1, true) end)
leave()
kit.leave()
