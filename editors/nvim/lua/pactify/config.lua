-- The person's choices, from `vim.g.pactify`; there is no setup() to call.

local M = {}

--- `cmd` is the server and its arguments, `enable` whether it starts for every buffer in a git repository.
---@alias pactify.Config {cmd: string[], enable: boolean}
local defaults = { cmd = { 'pactify-lsp', '--stdio' }, enable = true } ---@type pactify.Config
local wanted = { cmd = 'a list of strings: a program and its arguments', enable = 'true or false' }

local function fits(name, value)
  if name == 'enable' then return type(value) == 'boolean' end
  local is_list = type(value) == 'table' and vim.islist(value) and #value > 0
  return is_list and vim.iter(value):all(function(word) return type(word) == 'string' and word ~= '' end)
end

--- What holds, and what is wrong with `vim.g.pactify`, one sentence each; that counts as absent.
---@return pactify.Config, string[] problems
function M.get()
  local config, problems, chosen = vim.deepcopy(defaults), {}, vim.g.pactify or {}
  if type(chosen) ~= 'table' then
    return config, { ('vim.g.pactify is a %s; it has to be a table'):format(type(chosen)) }
  end
  for name, value in vim.spairs(chosen) do
    if not wanted[name] then
      local known = table.concat(vim.fn.sort(vim.tbl_keys(wanted)), ', ')
      table.insert(problems, ('vim.g.pactify.%s is not known; there are %s'):format(name, known))
    elseif fits(name, value) then
      config[name] = value
    else
      local found = vim.inspect(value, { newline = ' ', indent = '' })
      table.insert(problems, ('vim.g.pactify.%s is %s; it has to be %s'):format(name, found, wanted[name]))
    end
  end
  return config, problems
end

return M
