-- Apply: exactly what was shown goes into the checkout, all of what was chosen or nothing. The server checks and
-- writes; here the person is asked, helped with unsaved buffers, and shown the new text.

local buffers = require('pactify.buffers')
local client = require('pactify.client')
local preview = require('pactify.preview')
local request = require('pactify.protocol').request
local ui = require('pactify.ui')

local M = {}

--- More paths than this are counted in a question, not named; the preview names them.
local most_paths = 20

local function listed(heading, files)
  if #files == 0 then return {} end
  local paths = vim.tbl_map(function(file) return '  ' .. file.path end, vim.list_slice(files, 1, most_paths))
  local more = #files - most_paths
  local rest = more > 0 and ('  … and %d more, first in the preview'):format(more) or ''
  return vim.iter({ heading, paths, rest }):flatten():totable()
end

local function is_special(file) return file.tier == 'sensitive' or file.new ~= nil and file.new.mode == 'symlink' end

--- Offers to write what stands in the way, then goes on.
local function save(root, data, go_on)
  local found = vim.iter(data.conflicts or {}):map(function(conflict) return buffers.of_file(root, conflict) end)
  local unsaved = found:filter(function(buffer) return vim.bo[buffer].modified end):totable()
  local function tell() client.tell(data, root) end
  -- Otherwise another editor has them.
  if #unsaved == 0 then return tell() end
  local function write()
    vim.iter(unsaved):each(function(buffer) vim.api.nvim_buf_call(buffer, vim.cmd.write) end)
    go_on()
  end
  local choices = { { 'Write them, then apply', write }, { 'Apply nothing', tell } }
  local names = vim.tbl_map(vim.api.nvim_buf_get_name, unsaved)
  ui.choose('Nothing was applied yet: buffers have unsaved text', choices, names)
end

--- Shows merges of the checkout's changes and the job's, and asks for them.
local function confirm_merges(job, merges, again)
  preview.merges(job, merges, function(close)
    local function apply()
      close()
      local function named(merge) return { path = merge.path, pathBytes = merge.pathBytes, object = merge.object } end
      again({ confirmMerges = vim.tbl_map(named, merges) })
    end
    vim.cmd.redraw()
    local question = ('Nothing was applied yet: you changed %d file(s) of it'):format(#merges)
    ui.choose(question, { { 'Apply the merges shown', apply }, { 'Apply nothing', close } })
  end)
end

--- Asks about what changed in the person's git directory while the job ran.
local function confirm_outside(job, again)
  client.request(request.status, { jobId = job.id }, function(status)
    local function line(change) return ('%s: %s %s'):format(change.weight, change.place, change.what) end
    local function put_back()
      client.request(request.restore_outside, { jobId = job.id }, function(restored)
        local function tell(refused) ui.complain(('not put back: %s: %s'):format(refused.place, refused.why)) end
        vim.iter(restored.refused):each(tell)
        again()
      end)
    end
    ui.choose('Your git directory changed while the job ran', {
      { 'Put it back, then apply', put_back },
      { 'Apply all the same', function() again({ confirmOutside = true }) end },
      { 'Apply nothing' },
    }, vim.tbl_map(line, status.job.outside or {}))
  end)
end

local function send(job, params)
  local root = vim.uri_to_fname(job.repository)
  client.request(request.apply, params, function(applied)
    local merged = #applied.merged > 0 and (', %d of them merged'):format(#applied.merged) or ''
    local already = #applied.already > 0 and (' (%d had it already)'):format(#applied.already) or ''
    ui.say(('applied %d file(s)%s%s; :Pactify undo takes it back'):format(#applied.applied, merged, already))
    preview.applied(job.id)
    buffers.reload(root)
  end, function(data)
    local function again(more) send(job, vim.tbl_extend('force', params, more or {})) end
    -- After the answer was handled: a plain `vim.ui.select` blocks.
    vim.schedule(function()
      local first = vim.iter(data.conflicts or {}):find(function(one) return one.kind ~= 'mergeNotShown' end)
      if #(data.conflicts or {}) > 0 and not first then return confirm_merges(job, data.conflicts, again) end
      if data.code == 'unsavedBuffers' then return save(root, data, again) end
      if data.code == 'outsideNotConfirmed' then return confirm_outside(job, again) end
      client.tell(data, root)
    end)
    return true
  end)
end

--- Applies what the preview showed; without one, shows it first.
---@param job pactify.JobSummary
---@param only_accepted boolean
function M.start(job, only_accepted)
  local view = preview.views[job.id]
  if not view or view.unseen then
    return preview.open(job, function() ui.say('look at the changes, then apply them with :Pactify apply') end)
  end
  local accepted, parts = preview.selection(view, true)
  if only_accepted and #accepted == 0 then
    return ui.say('nothing is accepted; `a` in the preview accepts a change or a file')
  end
  local choices = {}
  local function offer(label, files, more)
    local params = vim.tbl_extend('force', { jobId = job.id, changeSet = view.preview.changeSet }, more)
    table.insert(choices, #files > 0 and { label:format(#files), function() send(job, params) end } or nil)
  end
  local what = parts > 0 and (', %d change(s) in files taken in part'):format(parts) or ''
  offer('Apply what is accepted: %d file(s)' .. what, accepted, { select = accepted })
  local files, rest = view.preview.files, preview.selection(view, false)
  local special = vim.tbl_filter(is_special, files)
  if not only_accepted then
    local is_all = #rest == #files and vim.iter(rest):all(function(one) return not one.groups end)
    local all = { confirmSensitive = #special > 0 and vim.tbl_map(preview.name, special) or nil }
    local label = is_all and 'Apply all of it: %d file(s)' or 'Apply all that is not rejected: %d file(s)'
    offer(label, rest, is_all and all or { select = rest })
    local ordinary = vim.tbl_filter(function(file) return not is_special(file) and not file.refused end, files)
    if is_all and #special > 0 then
      offer('Apply %d file(s), without those', ordinary, { select = vim.tbl_map(preview.name, ordinary) })
    end
  end
  if #choices == 0 then return ui.complain('nothing of this result can be applied; g? in the preview tells more') end
  local detail = listed('These act by themselves once they are in your checkout, or are links:', special)
  local refused = vim.tbl_filter(function(file) return file.refused ~= nil end, files)
  vim.list_extend(detail, listed('These can never be applied and are left out:', refused))
  ui.choose(('Apply "%s"?'):format(job.title), vim.list_extend(choices, { { 'Apply nothing' } }), detail)
end

--- Takes the job's newest apply back.
function M.undo(job)
  client.request(request.undo, { jobId = job.id }, function(undone)
    ui.say(('undone, %d file(s) are as before'):format(#undone.restored))
    buffers.reload(vim.uri_to_fname(job.repository))
    preview.refresh(job.id)
  end)
end

return M
