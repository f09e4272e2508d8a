-- Taking a part: marks in the preview, an apply of what is accepted, the rest later, merges, and names of all kinds.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

local numbers = {}
for number = 1, 30 do
  table.insert(numbers, 'line ' .. number)
end
local function text(changes)
  local lines = vim.deepcopy(numbers)
  for number, line in pairs(changes) do
    lines[number] = line
  end
  return table.concat(lines, '\n') .. '\n'
end
local strange = 'a\nb \27[31m.txt'

local source = kit.start('numbers.txt')
kit.finish('Change three things', {
  { write = { path = 'numbers.txt', content = text({ [3] = 'three', [20] = 'twenty' }) } },
  { write = { path = '.vscode/tasks.json', content = '{}\n' } },
  { run = 'printf x > "$(printf \'latin-\\351.txt\')"; printf y > "$(printf \'a\\nb \\033[31m.txt\')"' },
  { say = 'Done.' },
})
now('no change is in the checkout', kit.on_disk('numbers.txt') == text({}))

-- For a person with 'nohidden', whose unsaved text must stay in its window: nothing is in the way of it, or refused.
vim.cmd.buffer(source)
vim.o.hidden = false
vim.api.nvim_buf_set_lines(source, 0, 1, false, { 'typed just now' })
vim.cmd('messages clear')
local function quit(what)
  local is_left, why = pcall(vim.cmd.quit)
  now(':q leaves ' .. what .. (is_left and '' or ': ' .. why), is_left)
end
vim.cmd('Pactify delegate')
check('a brief opens', 20, function() return vim.startswith(vim.api.nvim_buf_get_name(0), 'pactify://brief') end)
quit('it')
vim.cmd('Pactify jobs')
check('the list opens', 20, function() return kit.text_of(0):find('Change three things', 1, true) end)
quit('it')
kit.answers = { 'Change three things' }
vim.cmd('Pactify preview')
local function shown()
  local side = vim.api.nvim_tabpage_list_wins(0)[3]
  return side and vim.wo[side].winbar
end
check('the preview opens', 20, shown)
for _ = 1, 3 do
  local before = shown()
  kit.press(']f')
  check('the next file is shown', 20, function() return shown() ~= before end)
end
for _ = 1, 3 do
  quit('a window of it')
end
now('its tab page is gone', #vim.api.nvim_list_tabpages() == 1)
now('no error was shown', not vim.fn.execute('messages'):find('E%d+:'))
now(
  'the text is still unsaved, and shown',
  vim.bo[source].modified and vim.api.nvim_get_current_buf() == source and not kit.heard('E37')
)
vim.cmd('edit!')
vim.o.hidden = true

kit.answers = { 'Change three things' }
vim.cmd('Pactify preview')
check('the preview opens', 20, function() return #vim.api.nvim_tabpage_list_wins(0) == 3 end)
local list = vim.api.nvim_tabpage_list_wins(0)[1]
local function listed() return kit.text_of(list) end
local function line_of(part)
  for number, line in ipairs(vim.split(listed(), '\n')) do
    if line:find(part, 1, true) then return number end
  end
end
now('what acts by itself comes first', line_of('.vscode/tasks.json  (acts by itself)') < line_of('numbers.txt'))
now('no name brings a control character', not listed():find('[%z\1-\9\11-\31]'))
local function show(part)
  vim.api.nvim_set_current_win(list)
  vim.api.nvim_win_set_cursor(list, { assert(line_of(part), part), 0 })
  kit.press('<CR>')
  check('the file with ' .. part .. ' is shown', 10, function()
    local window = kit.windows('pactify://')[3]
    return window
      and vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window)):find('result/', 1, true)
      and require('pactify.preview').job_here()
      and vim.wo[window].winbar:find(part, 1, true)
  end)
  return vim.api.nvim_tabpage_list_wins(0)[3]
end
now('the bytes of a name lead to its text', kit.text_of(show('latin-')) == 'x\n')
now(
  'a name with control characters is never applied',
  listed():find('never applied: its name contains a control', 1, true)
)

-- One change of two is accepted.
local after = show('numbers.txt')
vim.api.nvim_set_current_win(after)
vim.api.nvim_win_set_cursor(after, { 10, 0 })
kit.press('a')
now('where nothing changed, there is nothing to accept', heard('no change here'))
vim.api.nvim_win_set_cursor(after, { 20, 0 })
kit.press('a')
now('the list shows that a part is accepted', listed():find('◐ M numbers.txt', 1, true))
local function signs(window)
  local space = vim.api.nvim_get_namespaces()['pactify.preview']
  local marks = vim.api.nvim_buf_get_extmarks(vim.api.nvim_win_get_buf(window), space, 0, -1, { details = true })
  return vim.tbl_map(function(mark) return { mark[2] + 1, vim.trim(assert(mark[4]).sign_text or '') } end, marks)
end
now('so does the line', vim.deep_equal(signs(after), { { 20, '✓' } }))
vim.api.nvim_set_current_win(list)
vim.api.nvim_win_set_cursor(list, { assert(line_of('latin-')), 0 })
kit.press('x')
now('a file is rejected in the list', listed():find('✗ A latin-', 1, true))

-- The person edits another part meanwhile, unsaved, in another file too.
kit.answers = { 'Apply what is accepted: 1 file(s), 1 change(s)' }
vim.cmd('Pactify apply-selected')
check(
  'only the accepted change is written',
  20,
  function() return kit.on_disk('numbers.txt') == text({ [20] = 'twenty' }) end
)
check(
  'and shown in the clean buffer',
  20,
  function() return vim.api.nvim_buf_get_lines(source, 19, 20, false)[1] == 'twenty' end
)
check('the preview shows what was applied', 10, function()
  local window = vim.api.nvim_tabpage_list_wins(0)[3]
  return window and vim.deep_equal(signs(window), { { 20, '=' } })
end)

-- The rest, where the person changed a line of it: a merge.
vim.fn.writefile(vim.split(text({ [20] = 'twenty', [28] = 'mine' }), '\n', { trimempty = true }), 'numbers.txt')
vim.api.nvim_set_current_win(list)
kit.press('R')
check('a merge is announced', 10, function() return listed():find('numbers.txt  (merge)', 1, true) end)
show('numbers.txt')
kit.press('m')
check('and shown beside the checkout', 10, function()
  local windows = vim.api.nvim_tabpage_list_wins(0)
  return kit.text_of(windows[2]) == text({ [20] = 'twenty', [28] = 'mine' })
    and kit.text_of(windows[3]) == text({ [3] = 'three', [20] = 'twenty', [28] = 'mine' })
end)
vim.api.nvim_set_current_win(list)
vim.api.nvim_win_set_cursor(list, { assert(line_of('latin-')), 0 })
kit.press('x')
now('a rejection outlives an apply, and is taken back by making it again', listed():find('  A latin-', 1, true))
vim.api.nvim_win_set_cursor(list, { assert(line_of('tasks.json')), 0 })
kit.press('x')
kit.answers = { 'Apply all that is not rejected: 2 file(s)', 'Apply the merges shown' }
vim.cmd('Pactify apply')
check(
  'the merge is written once it was shown',
  20,
  function() return kit.on_disk('numbers.txt') == text({ [3] = 'three', [20] = 'twenty', [28] = 'mine' }) end
)
now('what was rejected is not', not kit.on_disk('.vscode/tasks.json'))
now('names stayed what they are', kit.on_disk('latin-\233.txt') == 'x' and not kit.on_disk(strange))

-- Undo, one apply after the other; a buffer with text of its own is left alone.
vim.cmd.tabfirst()
vim.cmd.edit('README.md')
local readme = vim.api.nvim_get_current_buf()
vim.api.nvim_buf_set_lines(readme, 0, 1, false, { 'typed just now' })
kit.answers = { 'Change three things' }
vim.cmd('Pactify undo')
check(
  'an apply is undone',
  20,
  function() return kit.on_disk('numbers.txt') == text({ [20] = 'twenty', [28] = 'mine' }) end
)
check(
  'and the clean buffer shows it',
  20,
  function() return vim.api.nvim_buf_get_lines(source, 2, 3, false)[1] == 'line 3' end
)
now(
  'unsaved text is as it was',
  vim.bo[readme].modified and vim.api.nvim_buf_get_lines(readme, 0, 1, false)[1] == 'typed just now'
)
vim.cmd('edit!')

-- A conflict.
vim.fn.writefile(vim.split(text({ [3] = 'my three', [20] = 'twenty' }), '\n', { trimempty = true }), 'numbers.txt')
vim.cmd.tablast()
vim.api.nvim_set_current_win(list)
kit.press('R')
check('a conflict is announced', 10, function() return listed():find('numbers.txt  (conflict)', 1, true) end)
show('numbers.txt')
kit.press('m')
check(
  'and shown with both sides marked',
  10,
  function() return kit.text_of(vim.api.nvim_tabpage_list_wins(0)[3]):find('<<<<<<<', 1, true) end
)
now('as what it is', vim.wo[vim.api.nvim_tabpage_list_wins(0)[3]].winbar:find('1 conflicts: never written', 1, true))

-- What a job changed outside its tree is shown, and put back before anything is applied.
vim.cmd.tabonly()
vim.cmd.edit('README.md')
local config = kit.on_disk('.git/config')
kit.finish('Reach outside', {
  { run = ('git -C %s config core.fsmonitor ./evil'):format(vim.fn.shellescape(vim.fn.getcwd())) },
  { write = { path = 'inside.txt', content = 'inside\n' } },
  { say = 'Done.' },
})
now('the danger is real', kit.on_disk('.git/config'):find('evil', 1, true))
kit.answers = { 'Reach outside' }
vim.cmd('Pactify preview')
check('the preview shows it', 20, function()
  local first = vim.api.nvim_tabpage_list_wins(0)[1]
  return kit.text_of(first):find('! outside:', 1, true) and kit.text_of(first):find('fsmonitor', 1, true)
end)
kit.answers = { 'Apply all of it', 'Put it back, then apply' }
vim.cmd('Pactify apply')
check('the result is applied', 30, function() return kit.on_disk('inside.txt') == 'inside\n' end)
now('and the configuration is as it was', kit.on_disk('.git/config') == config)
kit.leave()
