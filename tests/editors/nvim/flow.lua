-- The whole flow: attach, delegate, progress, preview, apply, unsaved text, cancel.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

local readme = vim.fn.getcwd() .. '/README.md'
local old, new = '# Sample\n\nA small program.\n', '# Sample\n\nA small program that greets.\n'

vim.cmd.runtime('plugin/pactify.lua')
now('nothing is loaded before it is used', package.loaded['pactify.jobs'] == nil)
local names = vim.fn.getcompletion('Pactify ', 'cmdline')
for _, name in ipairs(names) do
  now(('<Plug>(pactify-%s) is there'):format(name), vim.fn.maparg(('<Plug>(pactify-%s)'):format(name), 'n') ~= '')
end
now('the plugin offers its commands', vim.list_contains(names, 'apply-selected') and #names == 20)
vim.cmd('Pactify fly')
now('another one is refused, with those that there are', heard('"fly" is no command; use one of accept, answer'))

local source = kit.start(readme)
vim.cmd.edit('run.sh')
vim.cmd.edit(vim.fn.getcwd() .. '/no-type')
check(
  'a file without a type is attached, too',
  10,
  function() return #vim.lsp.get_clients({ name = 'pactify', bufnr = 0 }) == 1 end
)

-- Delegate.
local progress ---@type any
vim.api.nvim_create_autocmd('LspProgress', {
  callback = function(event) progress = progress or event.data.params.value end,
})
local go = kit.folder .. '/go'
kit.open_brief('greet', 'Greet in the README', {
  { say = 'Looking around.' },
  { waitFor = { go, 600 } },
  { write = { path = 'README.md', content = new } },
  { write = { path = 'greeting.txt', content = 'hello\n' } },
  { say = 'Done.' },
})
vim.cmd('Pactify delegate')
check('the job is announced', 20, function() return heard('pactify: job ') end)
check(
  'its progress is in the statusline',
  20,
  function() return require('pactify').statusline():find('Greet in the README', 1, true) end
)
local shown = vim.api.nvim_eval_statusline("%{%v:lua.require'pactify'.statusline()%}", { maxwidth = 500 }).str
now('as :help writes it', shown:find('Greet in the README', 1, true))
now('by standard progress that any plugin can show and cancel', progress.cancellable and progress.kind == 'begin')
now(
  'which the statusline did not take away from vim.lsp.status()',
  vim.lsp.status():find('Greet in the README', 1, true)
)
vim.fn.writefile({}, go)
check('its end is told in words', 30, function() return heard('Greet in the README: changed 2 files') end)
check('the statusline is empty again', 10, function() return require('pactify').statusline() == '' end)
now('nothing is in the checkout yet', kit.on_disk('README.md') == old)

-- Preview.
vim.cmd.buffer(source)
kit.answers = { 'Greet in the README' }
vim.cmd('Pactify preview')
check(
  'the preview opens in a tab page of its own',
  20,
  function() return #vim.api.nvim_list_tabpages() == 2 and #vim.api.nvim_tabpage_list_wins(0) == 3 end
)
local windows = vim.api.nvim_tabpage_list_wins(0)
now('the list names the files', kit.text_of(windows[1]):find('M README.md', 1, true))
check(
  'the base is at the left, the result at the right',
  20,
  function() return kit.text_of(windows[2]) == old and kit.text_of(windows[3]) == new end
)
now('both are compared', vim.wo[windows[2]].diff and vim.wo[windows[3]].diff)
now('in their language', vim.bo[vim.api.nvim_win_get_buf(windows[3])].filetype == 'markdown')
for _, window in ipairs(windows) do
  local buffer = vim.bo[vim.api.nvim_win_get_buf(window)]
  now('a preview is no file and cannot be edited', buffer.buftype == 'nofile' and not buffer.modifiable)
end
vim.api.nvim_set_current_win(windows[3])
local written, refusal = pcall(vim.cmd.write)
now(':w does not apply', not written and refusal:find('E382', 1, true) and kit.on_disk('README.md') == old)
vim.cmd('silent! wall')
now('nor does what saves everything', kit.on_disk('README.md') == old)
kit.press('q')
now('q closes it', #vim.api.nvim_list_tabpages() == 1)
local job = next(require('pactify.preview').views)

-- Unsaved text refuses, also where a copy of it was written elsewhere.
vim.cmd.buffer(source)
vim.api.nvim_buf_set_lines(source, 0, 1, false, { '# Mine' })
vim.cmd.write(kit.folder .. '/copy.md')
now('a copy is no save', vim.bo[source].modified)
kit.answers = { 'Apply all of it: 2 file(s)', 'Apply nothing' }
vim.cmd('Pactify apply ' .. job)
check(
  'unsaved text is named, with the offer to write it',
  20,
  function() return heard('buffers have unsaved text\nWrite them, then apply') end
)
check('without that, the refusal is told', 20, function() return heard('(unsavedBuffers)') end)
now('and nothing is written', kit.on_disk('README.md') == old and not kit.on_disk('greeting.txt'))
vim.cmd.cclose()
vim.cmd.buffer(source)
vim.cmd('edit!')

-- Apply.
kit.answers = { false }
vim.cmd('Pactify apply ' .. job)
check('it is asked', 20, function() return #kit.answers == 0 end)
vim.wait(500)
now('a question left without an answer applies nothing', kit.on_disk('README.md') == old)
kit.answers = { 'Apply all of it: 2 file(s)' }
vim.cmd('Pactify apply ' .. job)
check(
  'the result is on the disk',
  20,
  function() return kit.on_disk('README.md') == new and kit.on_disk('greeting.txt') == 'hello\n' end
)
check(
  'and in the buffer that shows the file',
  20,
  function() return vim.api.nvim_buf_get_lines(source, 2, 3, false)[1] == 'A small program that greets.' end
)
now('which has no text of its own', not vim.bo[source].modified)

-- Cancel.
kit.open_brief('wait', 'Wait for ever', { { say = 'Waiting.' }, 'hang' })
vim.cmd('Pactify delegate')
check('another job runs', 20, function() return require('pactify').statusline():find('Wait for ever', 1, true) end)
check(
  'the command line completes its id',
  20,
  function() return #vim.fn.getcompletion('Pactify cancel ', 'cmdline') == 1 end
)
kit.answers = { 'Wait for ever' }
vim.cmd('Pactify cancel')
check('it is cancelled', 30, function() return heard('Wait for ever: cancelled') end)
kit.leave()
