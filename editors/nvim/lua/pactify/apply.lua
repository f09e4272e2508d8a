-- Apply: exactly what was shown goes into the checkout, all of what was chosen or nothing. The server checks and
-- writes; here the person is asked, helped with unsaved buffers, and shown the new text.

local client = require('pactify.client')
local protocol = require('pactify.protocol')

local M = {}

--- More paths than this are counted in a question, not named; the preview names them.
local most_paths = 20

---@param file pactify.PathName
---@return pactify.PathName
local function name(file)
  return { path = file.path, pathBytes = file.pathBytes }
end

---@param heading string
---@param files pactify.FileChange[]
local function listed(heading, files)
  if #files == 0 then
    return ''
  end
  local lines = { '', heading }
  for index = 1, math.min(#files, most_paths) do
    table.insert(lines, '  ' .. files[index].path)
  end
  if #files > most_paths then
    table.insert(lines, ('  … and %d more, first in the preview'):format(#files - most_paths))
  end
  return '\n' .. table.concat(lines, '\n')
end

--- Asks what to apply.
---@param job pactify.JobSummary
---@param preview pactify.Preview
---@return table? choice `select` and `confirmSensitive` of the parameters.
local function choose(job, preview)
  local special, ordinary, refused = {}, {}, {}
  for _, file in ipairs(preview.files) do
    local is_special = file.tier == 'sensitive' or (file.new and file.new.mode == 'symlink')
    table.insert(file.refused and refused or is_special and special or ordinary, file)
  end
  local possible = vim.list_extend(vim.deepcopy(special), ordinary)
  if #possible == 0 then
    vim.notify('pactify: nothing of this result can be applied', vim.log.levels.ERROR)
    return
  end
  local question = ('Apply %d of %d files of "%s"?'):format(#possible, #preview.files, job.title)
    .. listed('These act by themselves once they are in your checkout, or are links:', special)
    .. listed('These can never be applied and are left out:', refused)
  local buttons = #special == 0 and '&Apply\n&Nothing' or '&All, these too\n&Without these\n&Nothing'
  local answer = vim.fn.confirm(question, buttons, #special == 0 and 2 or 3, 'Warning')
  if answer == 1 then
    local select = #refused > 0 and vim.tbl_map(name, possible) or nil
    return { select = select, confirmSensitive = vim.tbl_map(name, special) }
  elseif answer == 2 and #special > 0 and #ordinary > 0 then
    return { select = vim.tbl_map(name, ordinary) }
  end
end

---@param root string
---@param file pactify.PathName
---@return integer? buffer Loaded, with this file.
local function buffer_of(root, file)
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(vim.fs.joinpath(root, file.path), '*?[{\\') .. '$')
  return buffer > 0 and vim.api.nvim_buf_is_loaded(buffer) and buffer or nil
end

--- Shows the new text in buffers that hold no text of their own.
---@param root string
---@param files pactify.PathName[]
local function reload(root, files)
  for _, file in ipairs(files) do
    local buffer = buffer_of(root, file)
    if buffer and not vim.bo[buffer].modified then
      local before = vim.bo[buffer].autoread
      vim.bo[buffer].autoread = true
      vim.cmd.checktime(buffer)
      vim.bo[buffer].autoread = before
    end
  end
end

--- Offers to write what stands in the way; true if it is written.
---@param root string
---@param conflicts pactify.Conflict[]
local function save(root, conflicts)
  local buffers = {}
  for _, conflict in ipairs(conflicts) do
    local buffer = buffer_of(root, conflict)
    if buffer and vim.bo[buffer].modified then
      table.insert(buffers, buffer)
    end
  end
  -- Otherwise another editor has them.
  if #buffers == 0 then
    return false
  end
  local paths = vim.tbl_map(vim.api.nvim_buf_get_name, buffers)
  local question = 'Nothing was applied yet. Write these buffers, then apply?\n  ' .. table.concat(paths, '\n  ')
  if vim.fn.confirm(question, '&Write\n&Nothing', 2, 'Warning') ~= 1 then
    return false
  end
  for _, buffer in ipairs(buffers) do
    vim.api.nvim_buf_call(buffer, vim.cmd.write)
  end
  return true
end

--- Shows merges of the checkout's changes and the job's, and asks for them.
---@param job pactify.JobSummary
---@param merges pactify.Conflict[]
---@param wanted fun()
local function confirm_merges(job, merges, wanted)
  require('pactify.preview').merges(job, merges, function()
    vim.cmd.redraw()
    local question = ('Nothing was applied yet: you changed %d file(s) of it. Apply the merges shown?'):format(#merges)
    if vim.fn.confirm(question, '&Apply\n&Nothing', 2, 'Warning') == 1 then
      wanted()
    end
  end)
end

---@param conflicts? pactify.Conflict[]
local function are_merges(conflicts)
  return conflicts ~= nil
    and #conflicts > 0
    and vim.iter(conflicts):all(function(conflict)
      return conflict.kind == 'mergeNotShown'
    end)
end

---@param job pactify.JobSummary
---@param params pactify.ApplyParams
local function send(job, params)
  local root = vim.uri_to_fname(job.repository)
  client.request(protocol.request.apply, params, function(applied)
    local already = #applied.already > 0 and (' (%d had it already)'):format(#applied.already) or ''
    vim.notify(('pactify: applied %d file(s)%s'):format(#applied.applied, already))
    reload(root, applied.applied)
  end, function(data)
    if are_merges(data.conflicts) then
      confirm_merges(job, data.conflicts, function()
        params.confirmMerges = vim.tbl_map(function(merge)
          return { path = merge.path, pathBytes = merge.pathBytes, object = merge.object }
        end, data.conflicts)
        send(job, params)
      end)
    elseif data.code == 'unsavedBuffers' and save(root, data.conflicts or {}) then
      send(job, params)
    else
      client.tell(data, root)
    end
    return true
  end)
end

--- Applies what the preview showed; without one, shows it first.
---@param job pactify.JobSummary
function M.start(job)
  local preview = require('pactify.preview').shown[job.id]
  if not preview then
    return require('pactify.preview').open(job, function()
      vim.notify('pactify: look at the changes, then apply them with `a` or :Pactify apply')
    end)
  end
  local choice = choose(job, preview)
  if choice then
    local params = vim.tbl_extend('force', { jobId = job.id, changeSet = preview.changeSet }, choice)
    send(job, params)
  end
end

--- Takes the job's newest apply back.
---@param job pactify.JobSummary
function M.undo(job)
  local root = vim.uri_to_fname(job.repository)
  client.request(protocol.request.undo, { jobId = job.id }, function(undone)
    vim.notify(('pactify: undone, %d file(s) are as before'):format(#undone.restored))
    reload(root, undone.restored)
  end, function(data)
    client.tell(data, root)
    return true
  end)
end

return M
