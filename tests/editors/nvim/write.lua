-- Writing to an agent: a brief in a scratch buffer, its header, what it quotes; a message to a job that goes on.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

local source = kit.start('src/main.c')
local steps = { { write = { path = 'new.txt', content = 'new\n' } }, { say = 'Done.' } }

local function opened(name)
  check(
    ('a text to write is opened: ' .. name),
    20,
    function() return vim.startswith(vim.api.nvim_buf_get_name(0), 'pactify://' .. name) end
  )
  return vim.api.nvim_get_current_buf()
end
local function lines() return vim.api.nvim_buf_get_lines(0, 0, -1, false) end
local function jobs()
  local protocol, list = require('pactify.protocol'), require('pactify.jobs')
  return require('pactify.client').ask(protocol.request.status, list.here(true), 60000).jobs
end

vim.cmd('Pactify delegate')
local brief = opened('brief')
now('it is markdown', vim.bo[brief].filetype == 'markdown')
now('with a header that names the harness', lines()[1] == '---' and lines()[2] == 'harness: codex')
now('and the cursor below it', vim.api.nvim_get_current_line() == '' and vim.api.nvim_win_get_cursor(0)[1] > 8)
vim.api.nvim_buf_set_lines(brief, -2, -1, false, kit.brief('Look around', steps))
local written, refusal = pcall(vim.cmd.write)
now(':w does not delegate', not written and refusal:find('E382', 1, true))
vim.cmd('silent! wall')
vim.cmd('hide')
vim.wait(300)
now('nor does anything that saves, or leaving it', #jobs() == 0)
vim.cmd.sbuffer(brief)

local function set(field, value)
  for number, line in ipairs(lines()) do
    if vim.startswith(line, field .. ':') then
      vim.api.nvim_buf_set_lines(0, number - 1, number, false, { field .. ': ' .. value })
      return number
    end
  end
end
--- Replaces what is below the header.
local function say(text) vim.api.nvim_buf_set_lines(0, vim.fn.index(lines(), '---', 1) + 1, -1, false, text) end
local number = assert(set('access', 'everything'))
vim.cmd('Pactify delegate')
now(
  'a word that is not known is refused',
  heard(('nothing was sent: line %d: access is one of write, readOnly'):format(number))
)
now('at its line', vim.diagnostic.get(brief)[1].lnum == number - 1)
vim.api.nvim_win_set_cursor(0, { number, 8 })
vim.api.nvim_set_current_line('access: re')
vim.api.nvim_win_set_cursor(0, { number, 9 })
now('words are completed', vim.deep_equal(require('pactify.compose').omnifunc(0, 're'), { 'readOnly' }))
vim.api.nvim_set_current_line('access: write')
set('verify', 'test -e new.txt')
kit.press('<C-c><C-c>')
kit.press('<C-c><C-c>')
now('pressed twice, its key says that it is being sent', heard('it is being sent'))
check('and delegates it', 30, function() return #jobs() == 1 and heard('pactify: job ') end)
now('and closes it', not vim.api.nvim_buf_is_valid(brief))
check('the header is no part of the task', 60, function() return heard('Look around: changed 1 file') end)
now('it was delegated once', #jobs() == 1)
local detail =
  require('pactify.client').ask(require('pactify.protocol').request.status, { jobId = jobs()[1].id }, 60000).job
now('the brief begins with the text', vim.startswith(detail.brief, 'Look around\n'))
now(
  'what the header asked for was done',
  detail.verification[1].command == 'test -e new.txt' and detail.verification[1].passed
)

-- What is quoted.
vim.cmd.buffer(source)
vim.cmd('3,4Pactify delegate')
opened('brief')
local quoted = table.concat(lines(), '\n')
now(
  'lines are quoted with their place',
  quoted:find('This is about src/main.c, lines 3–4:\n\n```c\nint main(void) {\n    puts("hello");\n```', 1, true)
)
kit.press('<C-c><C-k>')
vim.cmd.buffer(source)
local space = vim.api.nvim_create_namespace('test')
vim.diagnostic.set(space, source, { { lnum = 3, col = 4, message = 'no such function', source = 'cc', severity = 1 } })
vim.api.nvim_win_set_cursor(0, { 4, 0 })
vim.cmd('Pactify fix')
opened('brief')
quoted = table.concat(lines(), '\n')
now(
  'a problem is quoted',
  quoted:find('Fix this problem in line 4:\n\n> no such function (cc)\n\nsrc/main.c, lines 1–6:', 1, true)
)
now('with its lines', quoted:find('```c\n#include <stdio.h>', 1, true))

-- The history: an earlier brief.
kit.answers = { 'Look around' }
kit.press('<C-c><C-h>')
check(
  'an earlier brief can be taken',
  10,
  function() return table.concat(lines(), '\n'):find('\nLook around\n', 1, true) end
)
now('the header stays', lines()[2] == 'harness: codex')
kit.press('<C-c><C-k>')

-- A comment on a change: the job goes on.
kit.answers = { 'Look around' }
vim.cmd('Pactify preview')
check('the preview opens', 20, function() return #vim.api.nvim_tabpage_list_wins(0) == 3 end)
vim.api.nvim_set_current_win(vim.api.nvim_tabpage_list_wins(0)[3])
kit.press('C')
opened('message to Look around')
now('the place is quoted', table.concat(lines(), '\n'):find('This is about new.txt, line 1, as you left it:', 1, true))
vim.api.nvim_buf_set_lines(
  0,
  0,
  1,
  false,
  kit.brief('Say it louder.', { { write = { path = 'new.txt', content = 'NEW\n' } }, { say = 'Done.' } })
)
kit.said = {}
kit.press('<C-c><C-c>')
check('the job goes on', 20, function() return heard('"Look around" goes on') end)
check('to a new result', 60, function() return heard('Look around: changed 1 file') end)
check('which the open preview shows', 20, function()
  local window = vim.api.nvim_tabpage_list_wins(0)[3]
  return window and kit.text_of(window) == 'NEW\n'
end)

-- Another try, with other words: what its header leaves open is as the job had it.
kit.answers = { 'With another brief' }
vim.cmd('Pactify retry')
opened('brief')
now('a retry can begin with the old brief', table.concat(lines(), '\n'):find('\n\nLook around\n', 1, true))
say(kit.brief('Look again', steps))
set('withUserConfig', 'yes')
kit.said = {}
vim.cmd('Pactify delegate')
now('what is neither true nor false is refused', heard('withUserConfig is one of true, false'))
set('withUserConfig', 'true')
kit.press('<C-c><C-c>')
check('the retry ends', 60, function() return heard('Look again: changed 1 file') end)
local job = jobs()[1]
local spec = vim.fs.joinpath(vim.env.PACTIFY_HOME or vim.env.HOME .. '/.pactify', 'jobs', job.id, 'job.json')
local recorded = vim.json.decode(table.concat(vim.fn.readfile(spec)))
now('it is another try of the first job', recorded.retryOf == detail.id)
now('with what that had to pass', recorded.verify[1].command == 'test -e new.txt')
now("and the person's own configuration", recorded.withUserConfig == true)

-- In the checkout itself, and once more.
vim.cmd.tabfirst()
vim.cmd.tabonly()
local function looked(count)
  local list = jobs()
  return #list == count and list[1].outcome == 'succeeded'
end
vim.cmd('Pactify delegate')
opened('brief')
say(kit.brief('Look in place', { { say = 'Seen.' } }))
set('access', 'readOnly')
set('inPlace', 'true')
kit.press('<C-c><C-c>')
check('a job looks around in the checkout', 60, function() return looked(3) end)
now('as its summary says', jobs()[1].title == 'Look in place' and jobs()[1].inPlace)
kit.answers = { 'Look in place', 'With another brief' }
vim.cmd('Pactify retry')
opened('brief')
now('its brief says so, too', table.concat(lines(), '\n'):find('\naccess: readOnly\nbase: \ninPlace: true\n', 1, true))
kit.press('<C-c><C-c>')
check('another try looks around', 60, function() return looked(4) end)
now('in the checkout as well', jobs()[1].inPlace and jobs()[2].inPlace)

-- What the server refuses is told in its own words, and the brief stays: it can be sent again at once.
vim.cmd('Pactify delegate')
brief = opened('brief')
say({ 'Look' })
set('harness', 'kimi')
set('access', 'readOnly')
set('withUserConfig', 'true')
for _, name in ipairs({ 'a refusal is told', 'also that of another try' }) do
  kit.said = {}
  kit.press('<C-c><C-c>')
  check(name, 20, function() return heard('withUserConfig: a read-only job of kimi cannot have') end)
end
now('and the brief is still there', vim.api.nvim_buf_is_valid(brief) and #jobs() == 4)
set('harness', 'codex')
set('access', 'write')
set('withUserConfig', '')
say(vim.list_extend({ '+++', 'verify = ["test -s new.txt"]', '+++' }, kit.brief('Prove it', steps)))
for _, name in ipairs({ 'what it wants to run is asked about', 'and again, after it was left for later' }) do
  kit.said, kit.answers = {}, { 'Decide later' }
  kit.press('<C-c><C-c>')
  check(name, 20, function() return heard('May it run?') and #kit.answers == 0 end)
  vim.wait(100)
end

-- A server that never answers holds nothing up once it is gone.
local function server() return vim.lsp.get_clients({ name = 'pactify' })[1] end
local silent = server().id
kit.signal('sigstop')
kit.said = {}
kit.press('<C-c><C-c>')
vim.wait(300)
now('as long as it is there, it may answer', not heard('it is being sent'))
kit.press('<C-c><C-c>')
now('so nothing is sent twice', heard('it is being sent'))
kit.signal('sigkill')
check(
  'another server is started',
  30,
  function() return server() and server().id ~= silent and server().initialized end
)
kit.answers = { 'Allow exactly this' }
kit.press('<C-c><C-c>')
check('which takes what that one did not', 60, function() return heard('Prove it: changed 1 file') end)
now('once', #jobs() == 5 and not vim.api.nvim_buf_is_valid(brief))

-- What is written while a brief is being sent was not sent, and stays.
vim.cmd('Pactify delegate')
brief = opened('brief')
say(kit.brief('Look once more', { { say = 'Seen.' } }))
kit.press('<C-c><C-c>')
vim.api.nvim_buf_set_lines(brief, -1, -1, false, { 'And mind the gap' })
check('it is sent as it was', 60, function() return #jobs() == 6 and jobs()[1].state == 'finished' end)
now('and what came later is there', vim.api.nvim_buf_is_valid(brief) and lines()[#lines()] == 'And mind the gap')
kit.leave()
