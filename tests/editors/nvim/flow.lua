-- The whole flow in a real Neovim: attach, delegate, progress, preview, apply, unsaved text, cancel.
--
-- Run by tests/tests/e2e/clients.rs as `nvim --clean -l flow.lua` in a repository, with the plugin in 'runtimepath'.
-- Every step has a time limit of its own; the first one that misses it fails the run, with what was seen so far.

local folder = assert(vim.env.PACTIFY_FLOW, 'a folder for briefs and signals')
local said = {}

local function check(name, seconds, condition)
  local ok = vim.wait(seconds * 1000, function()
    return condition() and true or false
  end, 20)
  if not ok then
    io.stderr:write(('not ok - %s (%d s)\nsaid: %s\nlog: %s\n'):format(
      name,
      seconds,
      vim.inspect(said),
      vim.fn.filereadable(vim.lsp.log.get_filename()) == 1
          and table.concat(vim.fn.readfile(vim.lsp.log.get_filename()), '\n')
        or ''
    ))
    vim.cmd('cquit 1')
  end
  io.stdout:write('ok - ' .. name .. '\n')
end

local function now(name, value)
  check(name, 0, function()
    return value
  end)
end

-- A person who answers: what is told is kept, what is asked is answered from here.
local answers = { confirm = {}, select = nil }
vim.notify = function(text)
  table.insert(said, text)
end
vim.fn.confirm = function(question)
  table.insert(said, question)
  return table.remove(answers.confirm, 1) or 0
end
vim.ui.select = function(items, options, done)
  local labels = vim.tbl_map(options.format_item, items)
  table.insert(said, table.concat(labels, '\n'))
  done(answers.select and answers.select(items, labels) or items[1])
end

local function heard(text)
  return vim.iter(said):any(function(line)
    return line:find(text, 1, true) ~= nil
  end)
end

local function brief(name, title, steps)
  local path = ('%s/%s.brief.md'):format(folder, name)
  local lines = { title, '', '```agent' }
  for _, step in ipairs(steps) do
    table.insert(lines, vim.json.encode(step))
  end
  table.insert(lines, '```')
  vim.fn.writefile(lines, path)
  vim.cmd.edit(path)
end

local readme = vim.fn.getcwd() .. '/README.md'
local old, new = '# Sample\n\nA small program.\n', '# Sample\n\nA small program that greets.\n'
local function on_disk(path)
  local file = io.open(path, 'rb')
  return file and file:read('*a')
end

-- With `-l`, plugins aren't loaded.
vim.o.swapfile = false
vim.cmd.runtime('plugin/pactify.lua')
now('the plugin offers its verbs', vim.deep_equal(
  vim.fn.getcompletion('Pactify ', 'cmdline'),
  { 'apply', 'cancel', 'delegate', 'jobs', 'preview', 'undo' }
))
now('nothing is loaded before it is used', package.loaded['pactify.jobs'] == nil)

vim.cmd.edit(readme)
if not vim.lsp.enable then
  vim.cmd.doautocmd('FileType')
end
local source = vim.api.nvim_get_current_buf()
check('the server is attached', 20, function()
  local client = vim.lsp.get_clients({ name = 'pactify', bufnr = source })[1]
  return client and client.initialized
end)

-- Delegate.
local progress
vim.api.nvim_create_autocmd('LspProgress', {
  callback = function(event)
    progress = progress or event.data.params.value
  end,
})
local go = folder .. '/go'
brief('greet', 'Greet in the README', {
  { say = 'Looking around.' },
  { waitFor = { go, 60 } },
  { write = { path = 'README.md', content = new } },
  { write = { path = 'greeting.txt', content = 'hello\n' } },
  { say = 'Done.' },
})
vim.cmd('Pactify delegate')
check('the job is announced', 20, function()
  return heard('pactify: job ')
end)
check('its progress is in the statusline', 20, function()
  return require('pactify').statusline():find('Greet in the README', 1, true)
end)
now('by standard progress that any plugin can show and cancel', progress.cancellable and progress.kind == 'begin')
vim.fn.writefile({}, go)
check('its end is told in words', 30, function()
  return heard('Greet in the README: changed 2 files')
end)
check('the statusline is empty again', 10, function()
  return require('pactify').statusline() == ''
end)
now('nothing is in the checkout yet', on_disk(readme) == old)

-- Preview.
vim.cmd.buffer(source)
vim.cmd('Pactify preview')
check('the preview opens in a tab page of its own', 20, function()
  return #vim.api.nvim_list_tabpages() == 2 and #vim.api.nvim_tabpage_list_wins(0) == 3
end)
local windows = vim.api.nvim_tabpage_list_wins(0)
local function text_of(window)
  return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n') .. '\n'
end
now('the list names the files', text_of(windows[1]):find('M README.md', 1, true) ~= nil)
now('the base is at the left, the result at the right', text_of(windows[2]) == old and text_of(windows[3]) == new)
now('both are compared', vim.wo[windows[2]].diff and vim.wo[windows[3]].diff)
for _, window in ipairs(windows) do
  local buffer = vim.bo[vim.api.nvim_win_get_buf(window)]
  now('a preview is no file and cannot be edited', buffer.buftype == 'nofile' and not buffer.modifiable)
end
vim.api.nvim_set_current_win(windows[3])
local written, refusal = pcall(vim.cmd.write)
now(':w does not apply', not written and refusal:find('E382', 1, true) and on_disk(readme) == old)
vim.cmd.tabclose()
local job = next(require('pactify.preview').shown)

-- Unsaved text refuses.
vim.cmd.buffer(source)
vim.api.nvim_buf_set_lines(source, 0, 1, false, { '# Mine' })
answers.confirm = { 1, 2 }
vim.cmd('Pactify apply ' .. job)
check('unsaved text is named, with the offer to write it', 20, function()
  return heard('Write these buffers, then apply?\n  ' .. readme)
end)
check('without that, the refusal is told', 5, function()
  return heard('(unsavedBuffers)')
end)
now('and nothing is written', on_disk(readme) == old and not on_disk(vim.fn.getcwd() .. '/greeting.txt'))
vim.cmd.cclose()
vim.cmd.buffer(source)
vim.cmd('edit!')

-- Apply.
now('a question left without an answer applies nothing', (function()
  answers.confirm = { 2 }
  vim.cmd('Pactify apply ' .. job)
  return vim.wait(2000, function()
    return heard('Apply 2 of 2 files')
  end) and on_disk(readme) == old
end)())
answers.confirm = { 1 }
vim.cmd('Pactify apply ' .. job)
check('the result is on the disk', 20, function()
  return on_disk(readme) == new and on_disk(vim.fn.getcwd() .. '/greeting.txt') == 'hello\n'
end)
check('and in the buffer that shows the file', 5, function()
  return vim.api.nvim_buf_get_lines(source, 2, 3, false)[1] == 'A small program that greets.'
end)
now('which has no text of its own', not vim.bo[source].modified)

-- Cancel.
brief('wait', 'Wait for ever', { { say = 'Waiting.' }, 'hang' })
vim.cmd('Pactify delegate')
check('another job runs', 20, function()
  return require('pactify').statusline():find('Wait for ever', 1, true)
end)
check('the command line completes its id', 20, function()
  return #vim.fn.getcompletion('Pactify cancel ', 'cmdline') == 1
end)
vim.cmd('Pactify cancel')
check('it is cancelled', 30, function()
  return heard('Wait for ever: cancelled')
end)

-- Leaving.
for _, client in ipairs(vim.lsp.get_clients({ name = 'pactify' })) do
  if vim.fn.has('nvim-0.11') == 1 then
    client:stop()
  else
    client.stop()
  end
end
check('the server ends with its client', 10, function()
  return #vim.lsp.get_clients({ name = 'pactify' }) == 0
end)
vim.cmd('qall!')
