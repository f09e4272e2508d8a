-- How long a key takes from the keyboard to the screen: in turns without a job, and while one says ten thousand events a
-- second. Prints both as JSON, in milliseconds.
--
-- The Neovim that is measured runs in a terminal of this one's, with its list of jobs open and the job in its statusline.
-- Each key is another character, so that the screen shows it once.

local folder = assert(vim.env.PACTIFY_FLOW, 'a folder for briefs and signals')
local rounds, keys, line_length = 5, 150, 40
--- Between two keys, in milliseconds.
local gap = 20
--- The first of many characters that nobody else writes.
local first = 0x4e00
--- For everything but a key.
local patience = 90

local socket = folder .. '/nvim.sock'
---@type {text: string, at?: integer, tail: string}?
local awaited
local argv = vim.json.decode(vim.env.PACTIFY_CHILD)
local terminal = vim.fn.jobstart(vim.list_extend({ argv[1], '--listen', socket }, argv, 2), {
  pty = true,
  width = 120,
  height = 32,
  env = { TERM = 'xterm-256color' },
  on_stdout = function(_, data)
    if not awaited or awaited.at then return end
    awaited.tail = awaited.tail .. table.concat(data, '\n')
    if awaited.tail:find(awaited.text, 1, true) then awaited.at = vim.uv.hrtime() end
  end,
})

local function fail(what)
  io.stderr:write('not ok - ' .. what .. '\n')
  vim.fn.jobstop(terminal)
  vim.cmd('cquit 1')
end
local function await(what, condition)
  if not vim.wait(patience * 1000, function() return condition() and true or false end, 20) then fail(what) end
end
local function exists(path) return vim.uv.fs_stat(path) ~= nil end

await('Neovim listens', function() return exists(socket) end)
local channel = vim.fn.sockconnect('pipe', socket, { rpc = true })
local function there(code, ...) return vim.fn.rpcrequest(channel, 'nvim_exec_lua', code, { ... }) end
local function shows(...)
  local lines = there('return vim.api.nvim_buf_get_lines(vim.fn.bufnr("pactify://jobs"), 0, -1, false)')
  local texts = { ... }
  return vim.iter(lines):any(function(line)
    return vim.iter(texts):all(function(text) return line:find(text, 1, true) ~= nil end)
  end)
end

local number = 0
--- Types many keys into an empty buffer, each once the one before it is shown.
local function typed(samples)
  there('vim.cmd.stopinsert() vim.api.nvim_buf_set_lines(0, 0, -1, false, {})')
  vim.fn.chansend(terminal, 'i')
  await('insert mode', function() return there('return vim.api.nvim_get_mode().mode') == 'i' end)
  for key = 1, keys do
    number = number + 1
    awaited = { text = vim.fn.nr2char(first + number), tail = '' }
    local begun = vim.uv.hrtime()
    vim.fn.chansend(terminal, awaited.text)
    await('a key is shown', function() return awaited.at end)
    table.insert(samples, (awaited.at - begun) / 1e6)
    awaited = nil
    vim.wait(gap)
    if key % line_length == 0 then vim.fn.chansend(terminal, '\r') end
  end
  vim.fn.chansend(terminal, '\27')
end

there('vim.cmd("Pactify jobs") vim.cmd.wincmd("p")')
await('the list of jobs', function() return shows('No job here') end)
local samples = { without = {}, with = {} }
for round = 1, rounds do
  typed(samples.without)
  local talks, stop = ('%s/talks-%d'):format(folder, round), ('%s/stop-%d'):format(folder, round)
  local title, brief = 'Chatter ' .. round, ('%s/chatter-%d.brief.md'):format(folder, round)
  local steps = {
    { run = ("echo > '%s'"):format(talks) },
    { chatter = { perSecond = 10000, ['until'] = stop, seconds = patience } },
    { write = { path = 'a.txt', content = 'a\n' } },
  }
  vim.fn.writefile(vim.list_extend({ title, '', '```agent' }, vim.tbl_map(vim.json.encode, steps)), brief)
  vim.fn.writefile({ '```' }, brief, 'a')
  there('vim.cmd.edit(...) vim.cmd("Pactify delegate") vim.cmd.buffer("README.md")', brief)
  await('the job talks', function() return exists(talks) and shows(title, 'message ') end)
  typed(samples.with)
  vim.fn.writefile({}, stop)
  await('its last state', function() return shows(title, 'succeeded', '1 file, +1 −0') end)
end
io.stdout:write(vim.json.encode(samples) .. '\n')
vim.fn.chansend(terminal, ':qall!\r')
vim.fn.jobwait({ terminal }, patience * 1000)
vim.cmd('qall!')
