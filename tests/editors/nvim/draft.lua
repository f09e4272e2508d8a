-- A brief that is being written outlives its Neovim, whether that is left or killed, until it is sent or dropped; it is
-- of one repository, and of one Neovim at a time.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

local drafts = vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'pactify')
--- The paths of drafts, and what they say, one after the other.
local function paths() return vim.fn.filter(vim.fn.glob(drafts .. '/*', true, true), 'v:val !~ "new$"') end
local function kept() return table.concat(vim.iter(paths()):map(vim.fn.readfile):flatten():totable(), '\n') end

--- Another Neovim, in which somebody opens a brief and presses these keys.
local function another(keys)
  local script = kit.folder .. '/another.lua'
  vim.fn.writefile({
    'vim.o.swapfile, vim.o.updatetime = false, vim.env.SLOWLY and 100000 or 50',
    "vim.cmd('Pactify delegate')",
    'local timer = vim.uv.new_timer()',
    'timer:start(50, 50, vim.schedule_wrap(function()',
    "  if not vim.startswith(vim.api.nvim_buf_get_name(0), 'pactify://brief') or timer:is_closing() then return end",
    '  timer:close()',
    ('  vim.api.nvim_input(%q)'):format(keys),
    'end))',
  }, script)
  local server = 'let g:pactify = ' .. vim.json.encode(vim.g.pactify)
  local argv = { vim.v.progpath, '--clean', '--cmd', 'let &rtp = ' .. vim.fn.string(vim.o.rtp), '--cmd', server }
  return vim.system(vim.list_extend(argv, { '--headless', 'README.md', '-c', 'luafile ' .. script }))
end
local function opened()
  check('a brief is opened', 20, function() return vim.startswith(vim.api.nvim_buf_get_name(0), 'pactify://brief') end)
  return vim.api.nvim_get_current_buf()
end
local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') end

kit.start('README.md')
vim.cmd('Pactify delegate')
opened()
vim.api.nvim_exec_autocmds('TextChanged', { buffer = 0 })
now('a brief that nobody changed is no draft', kept() == '')
kit.press('<C-c><C-k>')

local killed = another('iMend the parser')
check('what is being typed is kept', 30, function() return kept():find('\n\nMend the parser', 1, true) end)
now('with its header', vim.startswith(kept(), '---\nharness: codex'))
now('for nobody else', vim.fn.getfperm(paths()[1]) == 'rw-------' and vim.fn.getfperm(drafts) == 'rwx------')
vim.cmd('Pactify delegate')
opened()
now(
  'nobody else goes on with what is still being written',
  not heard('A brief was not sent') and not text():find('Mend', 1, true)
)
kit.press('<C-c><C-k>')
now('or drops it', kept():find('Mend the parser', 1, true))
killed:kill(9)
killed:wait(60000)

local other = vim.fs.joinpath(kit.folder, 'other')
vim.fn.system({ 'git', 'clone', '--quiet', vim.fn.getcwd(), other })
kit.start(vim.fs.joinpath(other, 'README.md'))
vim.cmd('Pactify delegate')
local brief = opened()
now('another repository is not offered it', not heard('A brief was not sent'))
vim.api.nvim_buf_set_lines(brief, -2, -1, false, { 'Something else' })
vim.api.nvim_exec_autocmds('TextChanged', { buffer = brief })
now('and has its own', #paths() == 2)
kit.press('<C-c><C-k>')
now('for itself', #paths() == 1)
vim.cmd.edit(vim.fs.joinpath(vim.fn.getcwd(), 'README.md'))

kit.answers = { 'Go on with it' }
vim.cmd('Pactify delegate')
brief = opened()
now('the death of its Neovim leaves it to the next', text() == kept())
now('which sees what it is before it answers', heard('A brief was not sent\nGo on with it'))
vim.api.nvim_buf_set_lines(brief, -1, -1, false, { 'and its tests' })
vim.api.nvim_exec_autocmds('TextChanged', { buffer = brief })
now('and keeps what is added', kept():find('Mend the parser\nand its tests', 1, true))
kit.press('<C-c><C-k>')
now('until it is dropped', kept() == '')

vim.env.SLOWLY = 'yes'
local left = another('iLeave at once<Cmd>qall<CR>')
now('a Neovim with a brief is left without a question', left:wait(60000).code == 0)
now('and the brief is kept', kept():find('\n\nLeave at once', 1, true))
kit.answers = { 'Begin a new one' }
vim.cmd('Pactify delegate')
brief = opened()
now('nobody has to go on with it', not text():find('Leave', 1, true) and kept():find('Leave', 1, true))
vim.api.nvim_buf_set_lines(brief, -2, -1, false, kit.brief('Say something', { { say = 'Done.' } }))
vim.api.nvim_exec_autocmds('TextChanged', { buffer = brief })
now('the new one takes its place', kept():find('Say something', 1, true) and not kept():find('Leave', 1, true))
kit.press('<C-c><C-c>')
check('it is sent', 30, function() return not vim.api.nvim_buf_is_valid(brief) end)
now('and kept no longer', kept() == '')
check('by a job', 60, function() return heard('Say something: ') end)

kit.answers = { 'Say something', 'With another brief' }
vim.cmd('Pactify retry')
brief = opened()
vim.api.nvim_buf_set_lines(brief, -1, -1, false, { 'Once more.' })
vim.api.nvim_exec_autocmds({ 'TextChanged', 'InsertLeave', 'CursorHoldI' }, { buffer = brief })
now('a retry brief leaves no draft', #paths() == 0)

-- Process numbers come again, in containers at once.
vim.cmd.wincmd('p')
local name = ('%s.%d.1'):format(vim.fn.sha256(assert(vim.fs.root(0, '.git'))), vim.fn.getpid())
vim.fn.writefile({ '---', '---', '', 'Left by an earlier one' }, vim.fs.joinpath(drafts, name))
kit.answers = { 'Go on with it' }
vim.cmd('Pactify delegate')
check('a draft of one that had the same number is offered', 20, function() return text():find('Left by', 1, true) end)
kit.leave()
