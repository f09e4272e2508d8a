-- What else is done with a result: unsaved text is written first, a tree is opened, a patch and a branch are made; a command
-- that a brief proposes is asked about; a job outlives the Neovim that started it.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

--- What git says here.
local function git(...) return assert(vim.system({ 'git', ... }, { text = true }):wait().stdout) end

local source = kit.start('README.md')

-- A job that is started in one Neovim, and ends after that one has.
local go = kit.folder .. '/go'
local there, leave = kit.another()
there('vim.cmd.edit("README.md")')
local text = table.concat(
  kit.brief('Outlive an editor', {
    { waitFor = { go, 600 } },
    { write = { path = 'README.md', content = '# Sample\n\nA program that lives.\n' } },
    { say = 'Done.' },
  }),
  '\n'
)
there('vim.cmd.edit("brief") vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)', vim.split(text, '\n'))
there('vim.cmd.saveas(...) vim.cmd("Pactify delegate")', kit.folder .. '/outlive.brief.md')
vim.cmd('Pactify jobs')
local window = vim.api.nvim_get_current_win()
local function board() return kit.text_of(window) end
local function job() return assert(board():match('id%s+(%S+)')) end
check('a job of another Neovim runs', 60, function() return board():find('running', 1, true) end)
leave()
vim.fn.writefile({}, go)
check('and ends well after that one has', 60, function() return board():find('succeeded', 1, true) end)
now('with its result', board():find('1 file, +1 −1', 1, true))
vim.cmd.close()

-- Unsaved text is written, and then there is a merge to look at, since the checkout has it.
vim.cmd.buffer(source)
vim.api.nvim_buf_set_lines(source, 0, 1, false, { '# Mine' })
kit.answers = { 'Outlive an editor' }
vim.cmd('Pactify preview')
check('the preview opens', 20, function() return #vim.api.nvim_tabpage_list_wins(0) == 3 end)
kit.answers = { 'Apply all of it: 1 file(s)', 'Write them, then apply', 'Apply the merges shown' }
vim.cmd('Pactify apply')
check('unsaved text is written first', 20, function() return not vim.bo[source].modified end)
check(
  'and merged with the result',
  20,
  function() return kit.on_disk('README.md') == '# Mine\n\nA program that lives.\n' end
)
check(
  'which the buffer shows',
  10,
  function()
    return vim.deep_equal(vim.api.nvim_buf_get_lines(source, 0, -1, false), { '# Mine', '', 'A program that lives.' })
  end
)
vim.cmd.tabonly()
vim.cmd.buffer(source)

-- Export, and the tree.
kit.answers = { 'Outlive an editor', 'As a patch, in a buffer' }
vim.cmd('Pactify export')
check('a patch is shown', 20, function()
  local shown = kit.windows('pactify://patch/')[1]
  return shown and kit.text_of(shown):find('^diff %-%-git a/README.md b/README.md\n')
end)
now('as what it is', vim.bo[vim.api.nvim_win_get_buf(kit.windows('pactify://patch/')[1])].filetype == 'diff')
kit.press('q')
vim.cmd('Pactify jobs all')
window = vim.api.nvim_get_current_win()
check('the list has decided jobs, too', 20, function() return board():find('applied', 1, true) end)
local id = job()
local head = git('rev-parse', '--abbrev-ref', 'HEAD')
kit.answers = { 'As a branch pactify/' .. id }
kit.press('e')
check('a branch is made', 20, function() return heard('made the branch pactify/' .. id) end)
now('that has the result', git('show', ('pactify/%s:README.md'):format(id)):find('that lives', 1, true))
now('and is not checked out', git('rev-parse', '--abbrev-ref', 'HEAD') == head)
kit.answers = { 'Leave it' }
kit.press('w')
check('what may be in a tree is told', 20, function() return heard('What an agent left can run') end)
vim.wait(200)
now('and nothing opened without a yes', #vim.api.nvim_list_tabpages() == 1)
kit.answers = { 'Open ' }
kit.press('w')
check('the tree opens in a tab page', 20, function() return #vim.api.nvim_list_tabpages() == 2 end)
now('where the result is', kit.on_disk('README.md') == '# Sample\n\nA program that lives.\n')
vim.cmd.tabclose()
vim.cmd.close()

-- What a brief wants to run.
local command = 'test -e proved.txt'
local brief = kit.brief('Prove it', { { write = { path = 'proved.txt', content = 'p\n' } }, { say = 'Done.' } })
local path = kit.folder .. '/prove.brief.md'
vim.fn.writefile(vim.list_extend({ '+++', ('verify = [%q]'):format(command), '+++' }, brief), path)
vim.cmd.edit(path)
local function delegate(answer)
  kit.said, kit.answers = {}, { answer }
  vim.cmd('Pactify delegate')
  check('a command is asked about', 20, function() return heard('May it run?') and #kit.answers == 0 end)
end
local seen ---@type string?
local select_one = vim.ui.select
vim.ui.select = function(...)
  local shown = kit.windows('pactify://question')[1]
  seen = shown and kit.text_of(shown)
  select_one(...)
end
delegate('Decide later')
now('with its exact text', seen and seen:find('\n' .. command .. '\n', 1, true))
vim.wait(300)
now('and nothing starts without a decision', not heard('pactify: job '))
delegate('Allow exactly this')
check('then it does', 60, function() return heard('Prove it: changed 1 file') end)
kit.said = {}
vim.cmd('Pactify delegate')
check('another one starts at once', 20, function() return heard('pactify: job ') end)
now('since the same is not asked again', not heard('May it run?'))
kit.leave()
