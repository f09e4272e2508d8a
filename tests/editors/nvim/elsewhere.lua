-- Two repositories: a brief and the list of jobs are of the one whose file they were asked for in, wherever Neovim was
-- started.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

local other = vim.fs.joinpath(kit.folder, 'other')
vim.fn.system({ 'git', 'clone', '--quiet', vim.fn.getcwd(), other })
kit.start('README.md')

local function is_list_of(name) return vim.wo.winbar:find('Jobs of ' .. name, 1, true) end
local function lists(text)
  local board = vim.fn.bufnr('pactify://jobs')
  return vim
    .iter(vim.api.nvim_buf_get_lines(board, 0, -1, false))
    :any(function(line) return line:find(text, 1, true) end)
end

--- Delegates a brief from a file of the other repository.
local function delegate(title, steps)
  kit.said = {}
  vim.cmd.edit(vim.fs.joinpath(other, 'README.md'))
  vim.cmd('Pactify delegate')
  check('a brief is opened', 20, function() return vim.startswith(vim.api.nvim_buf_get_name(0), 'pactify://brief') end)
  vim.api.nvim_buf_set_lines(0, -2, -1, false, kit.brief(title, steps))
  kit.press('<C-c><C-c>')
  check('it is delegated', 30, function() return heard('pactify: job ') end)
end
delegate('Look around elsewhere', { { say = 'Done.' } })
vim.cmd('Pactify jobs')
now('the list is of the repository that the file is in', is_list_of('other'))
check('and has the job', 20, function() return lists('Look around elsewhere') end)
kit.press('d')
check('a brief from the list is opened', 20, function() return vim.fn.mode() and vim.wo.winbar:find('brief') end)
now('and is of its repository', vim.b.pactify_root == vim.uv.fs_realpath(other))
vim.api.nvim_buf_delete(0, { force = true })

-- An answer about it comes when the list of another repository is shown.
local client = require('pactify.client')
local request, late = client.request, nil ---@type any, any
client.request = function(method, params, done, refused)
  client.request = request
  request(method, params, function(list)
    late = function() return done and done(list) end
  end, refused)
end
require('pactify.board').refresh()
check('the list is asked for again', 10, function() return late end)

vim.cmd.wincmd('t')
vim.cmd.edit('README.md')
vim.cmd('Pactify jobs')
now("from a file of another repository it is that one's", is_list_of('sample'))
late()
now('which shows no late answer about the other', not lists('Look around elsewhere'))
check('and has none', 20, function() return lists('No job here') end)
now('in one window', #kit.windows('pactify://jobs') == 1)

-- A list that was never answered, as when its server dies, is asked for again.
client.request = function()
  client.request, late = request, nil
end
require('pactify.board').refresh()
check('it is asked for', 10, function() return client.request == request end)
vim.cmd.wincmd('t')
kit.open_brief('later', 'Come later', { { say = 'Done.' } })
vim.cmd('Pactify delegate')
check('news come all the same', 30, function() return lists('Come later') end)

-- What cannot be listed says why.
assert(vim.uv.fs_rename('.git', '.away'))
require('pactify.board').refresh()
check('the list says what is wrong', 20, function() return lists('not in a git repository') end)
assert(vim.uv.fs_rename('.away', '.git'))
require('pactify.board').refresh()
check('until it is mended', 20, function() return lists('Come later') end)

-- What is done in a preview is of its job's repository.
delegate('Change elsewhere', { { write = { path = 'README.md', content = 'else\n' } }, { say = 'Done.' } })
check('it ends', 60, function() return heard('Change elsewhere: changed 1 file') end)
vim.cmd.edit(vim.fs.joinpath(other, 'README.md'))
kit.answers = { 'Change elsewhere' }
vim.cmd('Pactify preview')
check('a preview is opened', 20, function() return #vim.api.nvim_tabpage_list_wins(0) == 3 end)
for _, there in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  local root = vim.b[vim.api.nvim_win_get_buf(there)].pactify_root
  now('and is of its repository', root and vim.uv.fs_realpath(root) == vim.uv.fs_realpath(other))
end
kit.leave()
