-- What can be done with a job, each under the name that `:Pactify` and the keys of `:Pactify jobs` use.

local client = require('pactify.client')
local request = require('pactify.protocol').request
local ui = require('pactify.ui')

local M = {}

function M.is_over(job) return job.state == 'finished' or job.state == 'lost' end

--- `3 files, +10 −2`, or nothing.
---@param job {changes?: pactify.Totals}
---@return string
function M.counts(job)
  local changes = job.changes
  if not changes or changes.files == 0 then return '' end
  local plural = changes.files == 1 and '' or 's'
  return ('%d file%s, +%d −%d'):format(changes.files, plural, changes.added, changes.deleted)
end

local function has_result(job)
  local is_open = job.disposition == 'pending' or job.disposition == 'partlyApplied'
  return M.is_over(job) and is_open and M.counts(job) ~= ''
end

local function is_kept(job) return M.is_over(job) and job.disposition ~= 'discarded' end

local function is_applied(job) return job.disposition == 'applied' or job.disposition == 'partlyApplied' end

function M.standing(job)
  local decided = job.disposition ~= 'pending' and job.disposition or nil
  return ((decided or job.outcome or job.state):gsub('%u', ' %0'):lower())
end

function M.activity(job)
  if job.waiting then
    local more = (job.waitingMore or 0) > 0 and (' (and %d more)'):format(job.waitingMore) or ''
    return ('waits for you: %s%s'):format(job.waiting.title, more)
  end
  return not M.is_over(job) and job.activity or M.counts(job)
end

local function line(job)
  local doing = M.activity(job)
  return ('%s: %s (%s)'):format(job.harness, job.title, M.standing(job) .. (doing ~= '' and ', ' .. doing or ''))
end

local function answer(job)
  client.request(request.status, { jobId = job.id }, function(status)
    local waiting = (status.job.requests or {})[1]
    if not waiting then return ui.say('nothing is asked any more') end
    local choices = vim.tbl_map(function(option)
      local params = { jobId = job.id, requestId = waiting.requestId, optionId = option.id }
      -- What it means comes first: its name is the agent's to choose.
      local label = ('%s: %s'):format(option.kind:gsub('_', ' '), option.name)
      return { label, function() client.request(request.answer, params) end }
    end, waiting.options)
    local detail = waiting.detail and ui.lines(waiting.detail)
    local function read() ui.below('pactify://asks/' .. job.id, detail, detail[1]:find('^%-%-%- ') and 'diff') end
    if detail then table.insert(choices, { 'Read all of it first', read }) end
    local question = ('%s asks (%s, %s): %s'):format(job.harness, job.title, ui.age(waiting.since), waiting.title)
    ui.choose(question, choices, detail)
  end)
end

local function discard(job)
  local function done() ui.say(('discarded "%s"'):format(job.title)) end
  local function go() client.request(request.discard, { jobId = job.id }, done) end
  client.request(request.status, { jobId = job.id }, function(status)
    local lost = table.concat({ 'Its tree and its result are removed.', unpack(status.job.onlyInTree or {}) }, ' ')
    ui.choose(('Discard what "%s" did? %s'):format(job.title, lost), { { 'Discard it', go }, { 'Keep it' } })
  end)
end

local function retry(job)
  local compose = require('pactify.compose')
  local function same() compose.start(request.retry, { jobId = job.id }) end
  local other = { 'With another brief, harness or base …', function() compose.again(job) end }
  ui.choose(('Retry "%s"'):format(job.title), { { 'With the same brief', same }, other })
end

local function resume(job, message)
  if message == '' then return require('pactify.compose').message(job) end
  require('pactify.compose').resume(job, message)
end

local function export(job)
  local function as(form)
    client.request(request.export, { jobId = job.id, as = form }, function(exported)
      if exported.branch then return ui.say('made the branch ' .. exported.branch) end
      ui.below('pactify://patch/' .. job.id, ui.lines(exported.patch), 'diff')
    end)
  end
  local patch = { 'As a patch, in a buffer', function() as('patch') end }
  local branch = { 'As a branch pactify/' .. job.id, function() as('branch') end }
  ui.choose(('Export "%s"'):format(job.title), { patch, branch })
end

local function worktree(job)
  client.request(request.open_worktree, { jobId = job.id }, function(answered)
    local path = vim.uri_to_fname(answered.worktree)
    local function open() vim.cmd(('tabnew | tcd %s | edit .'):format(vim.fn.fnameescape(path))) end
    ui.choose('What an agent left can run when your tools look at it', { { 'Open ' .. path, open }, { 'Leave it' } })
  end)
end

local function cancel(job) client.request(request.cancel, { jobId = job.id }) end

--- Shows what a job was asked, did and said.
local function log(job)
  client.request(request.status, { jobId = job.id }, function(status)
    client.request(request.events, { jobId = job.id, limit = 1000 }, function(list)
      local detail, ending = status.job, status.job.ending ---@type pactify.JobDetail, pactify.Ending?
      local function told(event) return event.text and ('    %s  %s'):format(event.at:sub(12, 19), event.text) or {} end
      local did = vim.tbl_map(told, list.events)
      local ended = ending and ('%s; %s'):format(ending.what, ending.next) or M.standing(detail)
      local parts = { '# ' .. detail.title, '', ended, detail.notices, '', '## What it was asked', '' }
      vim.list_extend(parts, { ui.lines(detail.brief), '', '## What it did', '', did, '', '## What it says', '' })
      table.insert(parts, ui.lines(detail.finalMessage or ''))
      ui.below('pactify://log/' .. job.id, vim.iter(parts):flatten(2):totable(), 'markdown')
    end)
  end)
end

--- `key` is its key in `:Pactify jobs`, `fits` the jobs that it is for, `all` whether decided ones may be among them.
---@alias pactify.Action {name: string, key?: string, fits: (fun(job): boolean), all?: boolean, run: fun(job, rest)}

local function define(name, key, fits, run, all)
  return { name = name, key = key, fits = fits, run = run, all = all or false }
end

---@type pactify.Action[]
M.actions = {
  define('preview', 'p', has_result, function(job) require('pactify.preview').open(job) end),
  define('apply', 'a', has_result, function(job) require('pactify.apply').start(job, false) end),
  define('apply-selected', 'A', has_result, function(job) require('pactify.apply').start(job, true) end),
  define('undo', 'u', is_applied, function(job) require('pactify.apply').undo(job) end, true),
  define('answer', 'y', function(job) return job.waiting ~= nil end, answer),
  define('cancel', 'c', function(job) return not M.is_over(job) end, cancel),
  define('resume', 'r', is_kept, resume, true),
  define('retry', 't', M.is_over, retry, true),
  define('discard', 'D', is_kept, discard, true),
  define('log', 'L', function() return true end, log, true),
  define('worktree', 'w', is_kept, worktree, true),
  define('export', 'e', is_kept, export, true),
}

function M.named(name)
  return vim.iter(M.actions):find(function(action) return action.name == name end)
end

--- The parameters of a list of this repository's jobs.
---@param all boolean? Decided ones, too.
---@return pactify.StatusParams
function M.here(all) return { repository = client.repository(), all = all or false, limit = 200 } end

--- Does something with the job of this id; without one, with the one that the person chooses among those that fit.
---@param action pactify.Action
---@param id string
---@param rest string What follows the id.
function M.act(action, id, rest)
  if id ~= '' then
    return client.request(request.status, { jobId = id }, function(status) action.run(status.job, rest) end)
  end
  client.request(request.status, M.here(action.all), function(list)
    local fitting = vim.tbl_filter(action.fits, list.jobs)
    if #fitting == 0 then return ui.say(('no job to %s here; :Pactify jobs shows them'):format(action.name)) end
    local function go(job) return job and action.run(job, rest) end
    ui.select(('Pactify %s: '):format(action.name), fitting, line, go)
  end)
end

return M
