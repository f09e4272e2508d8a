-- `:Pactify <name> …`: what each name does, and how the command line completes.

local M = {}

--- What is not about one job; the rest is in `pactify.jobs`.
---@type table<string, fun(arguments: string, call: vim.api.keyset.create_user_command.command_args)>
local commands = {
  delegate = function(arguments, call)
    local lines = call.range > 0 and { call.line1, call.line2 } or nil
    require('pactify.compose').delegate(arguments, lines)
  end,
  fix = function() require('pactify.compose').fix() end,
  jobs = function(arguments) require('pactify.board').open(arguments == 'all') end,
  accept = function() require('pactify.preview').mark('accepted') end,
  reject = function() require('pactify.preview').mark('rejected') end,
  comment = function(_, call) require('pactify.preview').comment(call.line1, call.line2) end,
  doctor = function() vim.cmd('checkhealth pactify') end,
  restart = function() require('pactify.client').restart() end,
}

--- Every name that `:Pactify` takes.
function M.names()
  local actions = vim.tbl_map(function(action) return action.name end, require('pactify.jobs').actions)
  return vim.fn.sort(vim.list_extend(actions, vim.tbl_keys(commands)))
end

--- Runs `:Pactify`.
---@param call vim.api.keyset.create_user_command.command_args
function M.run(call)
  local name, arguments = call.args:match('^(%S*)%s*(.-)%s*$')
  name = name == '' and 'jobs' or name
  if commands[name] then return commands[name](arguments, call) end
  local jobs, action = require('pactify.jobs'), require('pactify.jobs').named(name)
  if action then
    local id, rest = (arguments --[[@as string]]):match('^(%S*)%s*(.*)$')
    if id == '' then id = require('pactify.preview').job_here() or require('pactify.board').job_here() or '' end
    return jobs.act(action, id, rest --[[@as string]])
  end
  local known = table.concat(M.names(), ', ')
  require('pactify.ui').complain(('%q is no command; use one of %s'):format(name, known))
end

--- Completes names, then the ids of jobs that fit.
---@param line string The command line up to the cursor.
---@return string[]
function M.complete(line)
  local name, rest = line:match('Pactify%s+(%S+)%s+(%S*)$')
  local starting_with = require('pactify.ui').starting_with
  if not name then return starting_with(line:match('Pactify%s+(%S*)$') or '', M.names()) end
  if name == 'jobs' then return starting_with(rest, { 'all' }) end
  local jobs, action = require('pactify.jobs'), require('pactify.jobs').named(name)
  if not action then return {} end
  local list = require('pactify.client').ask(require('pactify.protocol').request.status, jobs.here(action.all), 1000)
  local ids = vim.tbl_map(function(job) return job.id end, vim.tbl_filter(action.fits, list and list.jobs or {}))
  return starting_with(rest, ids)
end

--- For a statusline: what the jobs of this Neovim's repositories do, or nothing.
function M.statusline() return require('pactify.progress').statusline() end

return M
