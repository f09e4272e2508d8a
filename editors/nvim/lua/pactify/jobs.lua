-- The jobs of the current repository: listing them, choosing one, and what can be done with one.

local client = require('pactify.client')
local protocol = require('pactify.protocol')

local M = {}

---@param job pactify.JobSummary
local function is_over(job)
  return job.state == 'finished' or job.state == 'lost'
end

---@param job pactify.JobSummary
local function has_result(job)
  local is_open = job.disposition == 'pending' or job.disposition == 'partlyApplied'
  return is_over(job) and is_open and job.changes ~= nil and job.changes.files > 0
end

---@param job pactify.JobSummary
local function is_applied(job)
  return job.disposition == 'applied' or job.disposition == 'partlyApplied'
end

--- Which jobs a verb is for.
---@type table<string, fun(job: pactify.JobSummary): boolean>
M.fits = {
  preview = has_result,
  apply = has_result,
  undo = is_applied,
  cancel = function(job)
    return not is_over(job)
  end,
}

--- The parameters of a list of this repository's jobs: the undecided ones, unless the verb is for decided ones.
---@param verb string?
---@return pactify.StatusParams
function M.here(verb)
  local server = client.get()
  local repository = server and server.root_dir and vim.uri_from_fname(server.root_dir)
  return { repository = repository, all = verb == 'undo' }
end

---@param job pactify.JobSummary
local function line(job)
  local parts = { (job.outcome or job.state):gsub('%u', ' %0'):lower() }
  if job.disposition ~= 'pending' then
    table.insert(parts, (job.disposition:gsub('%u', ' %0'):lower()))
  end
  if not is_over(job) and job.activity then
    table.insert(parts, job.activity)
  elseif job.changes and job.changes.files > 0 then
    table.insert(parts, M.counts(job.changes))
  end
  return ('%s: %s (%s)'):format(job.harness, job.title, table.concat(parts, ', '))
end

--- `3 files, +10 −2`.
---@param changes pactify.Totals
function M.counts(changes)
  return ('%d file%s, +%d −%d'):format(
    changes.files,
    changes.files == 1 and '' or 's',
    changes.added,
    changes.deleted
  )
end

--- Lets the person choose among the jobs that fit.
---@param prompt string
---@param fits fun(job: pactify.JobSummary): boolean
---@param done fun(job: pactify.JobSummary)
---@param verb string?
local function choose(prompt, fits, done, verb)
  client.request(protocol.request.status, M.here(verb), function(list)
    local jobs = vim.tbl_filter(fits, list.jobs)
    if #jobs == 0 then
      return vim.notify('pactify: no job fits; :Pactify jobs shows all, :Pactify delegate starts one')
    end
    vim.ui.select(jobs, { prompt = prompt, kind = 'pactify', format_item = line }, function(job)
      if job then
        done(job)
      end
    end)
  end)
end

--- Does `act` with the job of this id; without one, with the one that the person chooses.
---@param id string
---@param verb string
---@param act fun(job: pactify.JobSummary)
function M.with(id, verb, act)
  if id == '' then
    return choose(('Pactify %s: '):format(verb), M.fits[verb], act, verb)
  end
  client.request(protocol.request.status, { jobId = id }, function(status)
    act(status.job)
  end)
end

---@param job pactify.JobSummary
function M.cancel(job)
  client.request(protocol.request.cancel, { jobId = job.id }, function() end)
end

---@param job pactify.JobSummary
local function tell(job)
  client.request(protocol.request.status, { jobId = job.id }, function(status)
    local ending = status.job.ending
    if ending then
      local level = ending.tone == 'bad' and vim.log.levels.ERROR or vim.log.levels.INFO
      vim.notify(('%s: %s: %s\n%s'):format(job.harness, job.title, ending.what, ending.next), level)
    end
  end)
end

---@param job pactify.JobSummary
local function retry(job)
  require('pactify.approve').request(protocol.request.retry, { jobId = job.id }, function() end)
end

---@param job pactify.JobSummary
local function discard(job)
  local question = ('Discard what "%s" did? Its tree and its result are removed.'):format(job.title)
  if vim.fn.confirm(question, '&Discard\n&Keep', 2, 'Warning') == 1 then
    client.request(protocol.request.discard, { jobId = job.id }, function() end)
  end
end

--- Shows all jobs, then what can be done with the chosen one.
function M.pick()
  choose('Jobs: ', function()
    return true
  end, function(job)
    local actions = vim.tbl_filter(function(action)
      return action.fits(job)
    end, {
      { label = 'Preview', fits = has_result, run = require('pactify.preview').open },
      { label = 'Apply', fits = has_result, run = require('pactify.apply').start },
      { label = 'Undo the apply', fits = is_applied, run = require('pactify.apply').undo },
      { label = 'Cancel', fits = M.fits.cancel, run = M.cancel },
      { label = 'How it ended', fits = is_over, run = tell },
      { label = 'Retry', fits = is_over, run = retry },
      { label = 'Discard', fits = is_over, run = discard },
    })
    local function label(action)
      return action.label
    end
    vim.ui.select(actions, { prompt = job.title .. ': ', format_item = label }, function(action)
      if action then
        action.run(job)
      end
    end)
  end)
end

return M
