-- The jobs of a repository in one live buffer: a fold for each, what can be done with it by a key.
--
-- News come often while an agent works; the list is asked for at most so often, and only while somebody sees it.

local client = require('pactify.client')
local jobs = require('pactify.jobs')
local ui = require('pactify.ui')

local M = {}

--- Milliseconds between two looks, for an agent that works and for ages; seconds for an answer, which may never come.
local pace, slow_pace, patience = 500, 30000, 5

--- What is shown: `job_at` by line, `heads` are the first lines of the jobs.
---@alias pactify.Board {buffer: integer, repository: string, all: boolean, lines: string[], job_at: table, heads: integer[]}
local shown ---@type pactify.Board?
local timer ---@type uv.uv_timer_t?
local is_due = false
local asked_at ---@type integer?

--- How a standing looks; what is over in another way went wrong.
local groups = { succeeded = 'DiagnosticOk', waiting = 'DiagnosticWarn', partlyApplied = 'DiagnosticInfo' }
groups.applied, groups.discarded, groups.noChanges, groups.cancelled = 'Comment', 'Comment', 'Comment', 'Comment'
local signs =
  { DiagnosticOk = '✓', DiagnosticWarn = '?', DiagnosticError = '✗', DiagnosticInfo = '●', Comment = '·' }

local function group(job)
  local decided = job.disposition ~= 'pending' and job.disposition or job.outcome
  return groups[decided or job.state] or jobs.is_over(job) and 'DiagnosticError' or 'DiagnosticInfo'
end

--- A text cut or filled to so many cells.
local function cell(text, width)
  if vim.fn.strdisplaywidth(text) > width then text = vim.fn.strcharpart(text, 0, width - 1) .. '…' end
  return text .. (' '):rep(width - vim.fn.strdisplaywidth(text))
end

local function details(job)
  local lines = {}
  local function add(name, value)
    if value and value ~= '' then table.insert(lines, ('%-8s %s'):format(name, value)) end
  end
  add('id', job.id)
  add('asks', job.waiting and ('%s (%s)'):format(job.waiting.title, ui.age(job.waiting.since)))
  add('model', job.model)
  add('access', job.access == 'readOnly' and (job.inPlace and 'read-only, in your checkout' or 'read-only') or 'write')
  add('base', ('%s %s'):format(job.base.kind, job.base.commit:sub(1, 10)))
  add('changes', jobs.counts(job))
  add('tokens', job.usage and ('%d in, %d out'):format(job.usage.inputTokens, job.usage.outputTokens))
  vim.iter(job.notices):each(function(notice) add('note', notice) end)
  return lines
end

local function render(list, width, otherwise)
  local lines, job_at, heads = {}, {}, {}
  local title = math.max(math.floor((width - 38) / 2), 16)
  for _, job in ipairs(list) do
    table.insert(heads, #lines + 1)
    local cells = { signs[group(job)], cell(jobs.standing(job), 14), cell(ui.age(job.createdAt), 4) }
    vim.list_extend(cells, { cell(job.harness, 8), cell(job.title, title), jobs.activity(job) })
    for number, line in ipairs({ table.concat(cells, ' '), unpack(details(job)) }) do
      table.insert(lines, ((number > 1 and '      ' or '') .. line:gsub('%c', ' ')))
      job_at[#lines] = job
    end
  end
  return #list > 0 and lines or ui.lines(otherwise or 'No job here. :Pactify delegate starts one.'), job_at, heads
end

--- Folds each job anew; those of `is_open` stay open.
---@param board pactify.Board
local function fold(board, is_open)
  vim.cmd('silent! normal! zE')
  for index, head in ipairs(board.heads) do
    vim.cmd(('%d,%dfold'):format(head, (board.heads[index + 1] or #board.lines + 1) - 1))
    if is_open[board.job_at[head].id] then vim.cmd(('silent! %dfoldopen'):format(head)) end
  end
end

--- Shows a list, or why there is none; folds and the cursor stay with their jobs.
---@param board pactify.Board
local function show(board, list, otherwise)
  local windows = vim.fn.win_findbuf(board.buffer)
  local width = windows[1] and vim.api.nvim_win_get_width(windows[1]) or vim.o.columns
  local lines, job_at, heads = render(list, width, otherwise)
  if vim.deep_equal(lines, board.lines) then
    board.job_at = job_at
    return
  end
  local kept = vim.tbl_map(function(window)
    local at, is_open = vim.api.nvim_win_get_cursor(window), {}
    vim.api.nvim_win_call(window, function()
      for _, head in ipairs(board.heads) do
        is_open[board.job_at[head].id] = vim.fn.foldclosed(head) == -1
      end
    end)
    return { window = window, column = at[2], job = board.job_at[at[1]], is_open = is_open }
  end, windows)
  board.lines, board.job_at, board.heads = lines, job_at, heads
  ui.fill(board.buffer, lines)
  for _, one in ipairs(kept) do
    vim.api.nvim_win_call(one.window, function() fold(board, one.is_open) end)
    for _, head in ipairs(heads) do
      local is_same = one.job and job_at[head].id == one.job.id
      if is_same then vim.api.nvim_win_set_cursor(one.window, { head, one.column }) end
    end
  end
end

local function look(by_itself)
  local board = shown
  if not board or #vim.fn.win_findbuf(board.buffer) == 0 or by_itself and not client.get(true) then return end
  if asked_at and vim.uv.hrtime() - asked_at < patience * 1e9 then return M.refresh() end
  asked_at = vim.uv.hrtime()
  local function asked(list)
    asked_at = nil
    if shown == board then show(board, list.jobs or {}, list.code and list.message .. '\n' .. list.next) end
    return true
  end
  local params = vim.tbl_extend('force', jobs.here(board.all), { repository = board.repository })
  client.request(require('pactify.protocol').request.status, params, asked, asked)
end

--- There may be news. However often this is called, the list is asked for at most once in `pace`.
function M.refresh()
  if not shown or is_due then return end
  is_due = true
  vim.defer_fn(function()
    is_due = false
    look(true)
  end, pace)
end

--- The job under the cursor, in the list.
function M.job_here()
  local board = shown and vim.api.nvim_get_current_buf() == shown.buffer and shown
  local job = board and board.job_at[vim.api.nvim_win_get_cursor(0)[1]]
  return job and job.id or nil
end

---@param board pactify.Board
local function map_keys(board)
  local function map(key, what, act)
    vim.keymap.set('n', key, act, { buffer = board.buffer, nowait = true, desc = 'pactify: ' .. what })
  end
  for _, action in ipairs(jobs.actions) do
    map(action.key, action.name, function()
      local job = board.job_at[vim.api.nvim_win_get_cursor(0)[1]]
      if job and action.fits(job) then return action.run(job, '') end
      if job then ui.say(('this job is %s: there is nothing to %s'):format(jobs.standing(job), action.name)) end
    end)
  end
  map('<CR>', 'fold', 'za')
  map('d', 'delegate', '<Cmd>Pactify delegate<CR>')
  map('g?', 'help', function() ui.help('pactify-jobs') end)
  map('q', 'close', '<Cmd>close<CR>')
  map('=', 'all jobs, or the open ones', function()
    board.all = not board.all
    look()
  end)
end

function M.open(all)
  local repository = client.repository()
  local window = shown and shown.repository == repository and vim.fn.win_findbuf(shown.buffer)[1]
  if shown and window then
    shown.all = shown.all or all
    vim.api.nvim_set_current_win(window)
    return look()
  end
  -- It says why not.
  if not repository then return client.request(require('pactify.protocol').request.status, {}) end
  -- The list of another repository makes room.
  if shown then vim.api.nvim_buf_delete(shown.buffer, { force = true }) end
  local buffer = ui.scratch('pactify://jobs', { 'Looking …' })
  shown = { buffer = buffer, repository = repository, all = all, lines = {}, job_at = {}, heads = {} }
  vim.api.nvim_create_autocmd('BufWipeout', { buffer = buffer, callback = function() shown = nil end })
  map_keys(shown)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(slow_pace, slow_pace, vim.schedule_wrap(M.refresh))
  vim.cmd('botright 14split')
  vim.api.nvim_win_set_buf(0, buffer)
  vim.bo[buffer].filetype = 'pactify'
  -- A standing, and what the details are.
  vim.iter(signs):each(function(name, sign) vim.cmd.syntax(([[match %s /^%s.\{15}/]]):format(name, sign)) end)
  vim.cmd.syntax([[match Comment /^ \{6}.\{8}/]])
  vim.cmd('setlocal foldmethod=manual foldtext= fillchars=fold:\\ ,eob:\\  nowrap cursorline nonumber norelativenumber')
  local name = vim.fs.basename(vim.uri_to_fname(repository)):gsub('%%', '%%%%')
  vim.wo.winbar = (' Jobs of %s · p preview  a apply  y answer  c cancel  d delegate  g? all keys'):format(name)
  look()
end

return M
