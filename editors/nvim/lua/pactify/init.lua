-- `:Pactify <verb> …`: what each verb does, and how the command line completes.

local protocol = require('pactify.protocol')

local M = {}

---@alias pactify.Verb fun(arguments: string, call: table)

---@type table<string, pactify.Verb>
local verbs = {
  delegate = function(arguments, call)
    local lines = call.range > 0 and { call.line1, call.line2 } or nil
    require('pactify.delegate').start(arguments, lines)
  end,
  jobs = function()
    require('pactify.jobs').pick()
  end,
  preview = function(id)
    require('pactify.jobs').with(id, 'preview', require('pactify.preview').open)
  end,
  apply = function(id)
    require('pactify.jobs').with(id, 'apply', require('pactify.apply').start)
  end,
  undo = function(id)
    require('pactify.jobs').with(id, 'undo', require('pactify.apply').undo)
  end,
  cancel = function(id)
    require('pactify.jobs').with(id, 'cancel', require('pactify.jobs').cancel)
  end,
}

--- Runs `:Pactify`.
function M.run(call)
  local verb, arguments = call.args:match('^(%S*)%s*(.-)%s*$')
  if verbs[verb] then
    return verbs[verb](arguments, call)
  end
  local known = table.concat(vim.fn.sort(vim.tbl_keys(verbs)), ', ')
  vim.notify(('pactify: %q is not a verb; use one of %s'):format(verb, known), vim.log.levels.ERROR)
end

--- Completes verbs, then job ids.
---@param line string The command line up to the cursor.
---@return string[]
function M.complete(line)
  local verb, rest = line:match('Pactify%s+(%S+)%s+(%S*)$')
  if not verb then
    local start = line:match('Pactify%s+(%S*)$') or ''
    return M.starting_with(start, vim.fn.sort(vim.tbl_keys(verbs)))
  end
  local jobs = require('pactify.jobs')
  local fits = jobs.fits[verb]
  if not fits then
    return {}
  end
  local list = require('pactify.client').ask(protocol.request.status, jobs.here(verb), 1000)
  local ids = vim.tbl_map(function(job)
    return job.id
  end, vim.tbl_filter(fits, list and list.jobs or {}))
  return M.starting_with(rest, ids)
end

---@param start string
---@param words string[]
function M.starting_with(start, words)
  return vim.tbl_filter(function(word)
    return vim.startswith(word, start)
  end, words)
end

--- For a statusline: what the jobs of this Neovim's repositories do, or nothing.
---@return string
function M.statusline()
  return require('pactify.progress').statusline()
end

return M
