-- Compose: what an agent is told, written in a scratch markdown buffer. Only `:Pactify delegate` in it, or its key, sends
-- it: the buffer is no file, so that nothing which writes buffers can.

local client = require('pactify.client')
local request = require('pactify.protocol').request
local ui = require('pactify.ui')

local M = {}

--- Lines around a diagnostic that its brief quotes.
local context = 3

--- The texts that are being written, by buffer. `send` is called with what is below the header, the header, what follows
--- once the server has it, and where to keep which server is to answer (`to`).
---@type table<integer, {send: function, header: boolean, draft: string, tick?: integer, to?: integer}>
local open = {}

--- Briefs until they are sent or dropped: neither leaving Neovim nor its death loses them. A file's name has the brief's
--- repository, its Neovim and when it was opened.
local drafts = vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'pactify')

local space = vim.api.nvim_create_namespace('pactify.compose')

--- What a header line may say, as the wire names it, and which words there are; the harnesses come from the server.
local fields = { 'harness', 'access', 'base', 'inPlace', 'model', 'permissions', 'withUserConfig', 'verify' }
local yes_or_no = { 'true', 'false' }
local words = { access = { 'write', 'readOnly' }, base = { 'head', 'workingTree', 'buffers' } }
words.permissions, words.inPlace, words.withUserConfig = { 'allow', 'ask' }, yes_or_no, yes_or_no

--- Starts a job, by `delegate` or `retry`; `done` comes once the server has it.
function M.start(method, params, done, sent)
  require('pactify.approve').request(method, params, function(delegated)
    ui.say(('job %s is %s; :Pactify jobs shows it'):format(delegated.jobId, delegated.state))
    vim.iter(delegated.notices):each(function(notice) ui.say(notice, vim.log.levels.WARN) end)
    if done then done() end
  end, sent or {})
end

local function delegate(brief, header, done, sent)
  local params = vim.tbl_extend('force', { brief = brief, repository = client.repository() }, header)
  M.start(request.delegate, params, done, sent)
end

local function header_end(lines) return lines[1] == '---' and vim.fn.index(lines, '---', 1) + 1 or 0 end

--- The header, the text below it, and what cannot be understood.
local function read(lines, has_header)
  local header, problems, last = {}, {}, has_header and header_end(lines) or 0
  for number = 2, last - 1 do
    local name, value = lines[number]:match('^(%a+):%s*(.-)%s*$')
    local problem
    if not vim.list_contains(fields, name) then
      problem = lines[number]:match('%S') and 'not a field; there are ' .. table.concat(fields, ', ')
    elseif value ~= '' and words[name] and not vim.list_contains(words[name], value) then
      problem = ('%s is one of %s'):format(name, table.concat(words[name], ', '))
    elseif value ~= '' then
      header[name] = name == 'verify' and vim.list_extend(header[name] or {}, { value }) or value
      if words[name] == yes_or_no then header[name] = value == 'true' end
    end
    table.insert(problems, problem and { lnum = number - 1, col = 0, message = problem, source = 'pactify' } or nil)
  end
  return header, vim.trim(table.concat(lines, '\n', last + 1)) .. '\n', problems
end

local function send(buffer)
  local header, text, problems = read(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), open[buffer].header)
  vim.diagnostic.set(space, buffer, problems)
  local why = problems[1] and ('line %d: %s'):format(problems[1].lnum + 1, problems[1].message)
    or not text:match('%S') and 'the text is empty'
  if why then return ui.complain('nothing was sent: ' .. why) end
  local one, tick = open[buffer], vim.api.nvim_buf_get_changedtick(buffer)
  one.send(text, header, function()
    one.to = nil
    local _, now = pcall(vim.api.nvim_buf_get_changedtick, buffer)
    if now == tick then pcall(vim.api.nvim_buf_delete, buffer, { force = true }) end
  end, one)
end

--- The words for the header line under the cursor, as 'omnifunc'.
function M.omnifunc(find_start, start)
  local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
  if find_start == 1 then return #(before:match('^%a+:%s*') or '') end
  local names = vim.tbl_map(function(field) return field .. ': ' end, fields)
  return ui.starting_with(start, words[before:match('^(%a+):')] or names)
end

local function hint(buffer, last)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, last, false)) do
    local name = line:match('^(%a+):')
    local text = name == 'verify' and 'a command the result has to pass; a line for each'
      or table.concat(words[name] or {}, ' | ')
    local virtual = { virt_text = { { '  ' .. text, 'Comment' } }, virt_text_pos = 'eol', invalidate = true }
    vim.api.nvim_buf_set_extmark(buffer, space, number - 1, 0, virtual)
  end
end

local function keep(buffer)
  local one = open[buffer]
  if one.send ~= delegate or one.tick == vim.api.nvim_buf_get_changedtick(buffer) then return end
  vim.fn.mkdir(drafts, 'p', tonumber('700', 8) --[[@as any]])
  local path = vim.fs.joinpath(drafts, one.draft)
  local file = assert(vim.uv.fs_open(path .. '.new', 'w', tonumber('600', 8) --[[@as integer]]))
  assert(vim.uv.fs_write(file, table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')))
  assert(vim.uv.fs_close(file) and vim.uv.fs_rename(path .. '.new', path))
end

--- A draft of this repository that no Neovim has open.
local function left(root)
  local mine = vim.tbl_map(function(one) return one.draft end, vim.tbl_values(open))
  return vim.iter(vim.fs.dir(drafts)):find(function(name)
    local neovim = name:match('^' .. vim.fn.sha256(root) .. '%.(%d+)%.%d+$')
    if tonumber(neovim) == vim.uv.os_getpid() then return not vim.list_contains(mine, name) end
    -- What has its number now may be another program.
    return neovim and not vim.fn.resolve(('/proc/%s/exe'):format(neovim)):find('nvim', 1, true)
  end)
end

--- Opens a text to write, for a repository; `header` lines come first.
local function begin(name, header, text, sending, root)
  local buffer = vim.api.nvim_create_buf(true, true)
  local draft = ('%s.%d.%d'):format(vim.fn.sha256(root or ''), vim.uv.os_getpid(), vim.uv.hrtime())
  open[buffer] = { send = sending, header = #header > 0, draft = draft }
  vim.bo[buffer].bufhidden, vim.b[buffer].pactify_root = 'hide', root
  vim.api.nvim_buf_set_name(buffer, ('pactify://%s %d'):format(name, buffer))
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.iter({ header, #text > 0 and text or '' }):flatten():totable())
  vim.cmd('botright split')
  vim.api.nvim_win_set_buf(0, buffer)
  vim.bo[buffer].filetype = 'markdown'
  vim.bo[buffer].omnifunc = "v:lua.require'pactify.compose'.omnifunc"
  local keys = ' · <C-c><C-c> or :Pactify delegate sends it · <C-c><C-k> drops it · g? help'
  vim.wo.winbar = ' ' .. name:gsub('%%', '%%%%') .. keys
  hint(buffer, #header)
  vim.api.nvim_win_set_cursor(0, { #header + 1, 0 })
  local function map(key, what, action, modes)
    vim.keymap.set(modes or 'n', key, action, { buffer = buffer, desc = 'pactify: ' .. what })
  end
  map('<C-c><C-c>', 'send', function()
    vim.cmd.stopinsert()
    send(buffer)
  end, { 'n', 'i' })
  map('<C-c><C-k>', 'drop', function() vim.api.nvim_buf_delete(buffer, { force = true }) end)
  map('<C-c><C-h>', 'earlier briefs', function() M.history(buffer) end)
  map('g?', 'help', function() ui.help('pactify-brief') end)
  local function drop()
    vim.uv.fs_unlink(vim.fs.joinpath(drafts, draft))
    open[buffer] = nil
  end
  vim.api.nvim_create_autocmd('BufWipeout', { buffer = buffer, callback = drop })
  open[buffer].tick = vim.api.nvim_buf_get_changedtick(buffer)
  local events = { 'TextChanged', 'InsertLeave', 'CursorHoldI', 'VimLeavePre' }
  vim.api.nvim_create_autocmd(events, { buffer = buffer, callback = function() keep(buffer) end })
  return draft
end

--- Opens a brief that has this text, and this header; `sending` is other than to delegate it.
local function brief(text, said, sending)
  local root = client.root()
  client.request(request.harnesses, { repository = client.repository() }, function(list)
    words.harness = vim.tbl_map(function(one) return one.name end, list.harnesses)
    local default = vim.iter(list.harnesses):find(function(one) return one.default end)
    said = vim.tbl_extend('keep', said or {}, { harness = default and default.name })
    local header = vim.tbl_map(function(field) return ('%s: %s'):format(field, said[field] or '') end, fields)
    local function new()
      return begin('brief', vim.iter({ '---', header, '---', '' }):flatten():totable(), text, sending or delegate, root)
    end
    local found = left(root or '')
    if not found then return new() end
    local lines = vim.fn.readfile(vim.fs.joinpath(drafts, found))
    local last = header_end(lines)
    local below = vim.list_slice(lines, last + 1)
    local function go_on() return begin('brief', vim.list_slice(lines, 1, last), below, delegate, root) end
    -- A new one takes its place: then what is there is lost with the first change, and no sooner.
    local function take(opened) vim.uv.fs_rename(vim.fs.joinpath(drafts, found), vim.fs.joinpath(drafts, opened())) end
    ui.choose('A brief was not sent', {
      { 'Go on with it', function() take(go_on) end },
      { 'Begin a new one, and drop it', function() take(new) end },
    }, below)
  end)
end

--- Lines of a buffer, fenced, and where they are.
---@param buffer integer
---@param first integer
---@param last integer
---@return string place
---@return string[] fenced
function M.quoted(buffer, first, last)
  local lines = vim.api.nvim_buf_get_lines(buffer, first - 1, last, false)
  local fence, path, root = '```', vim.api.nvim_buf_get_name(buffer), client.root()
  while table.concat(lines, '\n'):find(fence, 1, true) do
    fence = fence .. '`'
  end
  path = root and vim.startswith(path, root .. '/') and path:sub(#root + 2) or vim.fn.fnamemodify(path, ':t')
  local place = first == last and ('%s, line %d'):format(path, first) or ('%s, lines %d–%d'):format(path, first, last)
  return place, vim.iter({ fence .. vim.bo[buffer].filetype, lines, fence }):flatten():totable()
end

--- `:Pactify delegate`: sends the text of this buffer, or the given task; without either, opens a brief.
---@param task string
---@param lines? {[1]: integer, [2]: integer} Lines that it is about.
function M.delegate(task, lines)
  local buffer = vim.api.nvim_get_current_buf()
  if open[buffer] then return send(buffer) end
  if task == '' and not lines and vim.api.nvim_buf_get_name(buffer):match('%.brief%.md$') then
    return delegate({ uri = vim.uri_from_bufnr(buffer) }, {})
  end
  local text = task ~= '' and { task } or {}
  if lines then
    local place, fenced = M.quoted(buffer, lines[1], lines[2])
    text = vim.iter({ task, '', ('This is about %s:'):format(place), '', fenced }):flatten():totable()
  end
  if task ~= '' then return delegate(table.concat(text, '\n'), {}) end
  brief(text)
end

--- `:Pactify fix`: a brief about the diagnostics of this line.
function M.fix()
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local found = vim.diagnostic.get(0, { lnum = line - 1 })
  table.sort(found, function(a, b) return a.severity < b.severity end)
  if not found[1] then return ui.say('no diagnostic in this line; ]d goes to the next') end
  local last = math.min((found[1].end_lnum or line - 1) + 1 + context, vim.api.nvim_buf_line_count(0))
  local place, fenced = M.quoted(0, math.max(line - context, 1), last)
  local problems = vim.tbl_map(function(one)
    local source = one.source and (' (%s)'):format(one.source) or ''
    return ui.lines(('> %s%s'):format(one.message:gsub('\n', '\n> '), source))
  end, found)
  local heading = ('Fix this problem in line %d:'):format(line)
  brief(vim.iter({ heading, '', problems, '', place .. ':', '', fenced }):flatten(2):totable())
end

--- A brief that begins as that of a job, for another try of it: what is left empty is as the job had it.
function M.again(job)
  local function retry(text, said, done, sent)
    M.start(request.retry, vim.tbl_extend('force', { jobId = job.id, brief = text }, said), done, sent)
  end
  client.request(request.status, { jobId = job.id }, function(status)
    local header = { harness = job.harness, access = job.access }
    header[job.inPlace and 'inPlace' or 'base'] = job.inPlace and 'true' or job.base.kind
    brief(ui.lines(status.job.brief), header, retry)
  end)
end

--- Replaces the text below the header by that of an earlier job.
function M.history(buffer)
  local function label(job) return ('%s: %s'):format(ui.age(job.createdAt), job.title) end
  client.request(request.status, require('pactify.jobs').here(true), function(list)
    ui.select('Take the brief of: ', list.jobs, label, function(job)
      if not job then return end
      client.request(request.status, { jobId = job.id }, function(status)
        local last = header_end(vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
        local text = ui.lines((last > 0 and '\n' or '') .. status.job.brief)
        vim.api.nvim_buf_set_lines(buffer, last, -1, false, text)
      end)
    end)
  end)
end

--- Has a job go on with a message.
---@param job pactify.JobSummary
---@param message string
---@param done? fun()
function M.resume(job, message, done, sent)
  require('pactify.approve').request(request.resume, { jobId = job.id, message = message }, function(moved)
    ui.say(('"%s" goes on'):format(job.title) .. (moved.state == 'finished' and ' once it is its turn' or ''))
    if done then done() end
  end, sent or {})
end

--- Opens a message to write that a job goes on with.
---@param job pactify.JobSummary
---@param text? string[] What it says already.
function M.message(job, text)
  local function sending(message, _, done, sent) M.resume(job, message, done, sent) end
  begin('message to ' .. job.title:gsub('[/%c]', ' '), {}, text or {}, sending, client.root())
end

return M
