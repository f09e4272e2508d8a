-- The person's choices, from `vim.g.pactify`; there is no setup() to call.

local M = {}

---@class pactify.Config
---@field cmd? string[] The server and its arguments.
---@field enable? boolean Whether the server starts for every buffer in a git repository.

---@return pactify.Config
function M.get()
  local chosen = vim.g.pactify or {}
  assert(type(chosen) == 'table', 'vim.g.pactify is not a table')
  return vim.tbl_extend('force', { cmd = { 'pactify-lsp', '--stdio' }, enable = true }, chosen)
end

--- Hands on what the server says (how a job ended, above all) like everything else here.
---@param params lsp.ShowMessageParams
local function show_message(_, params)
  -- Error is 1 in the protocol and 4 in Neovim.
  vim.notify('pactify: ' .. params.message, 5 - params.type)
end

--- The server as `vim.lsp.config` wants it.
function M.server()
  return {
    name = 'pactify',
    cmd = M.get().cmd,
    root_markers = { '.git' },
    workspace_required = true,
    handlers = { ['window/showMessage'] = show_message },
  }
end

return M
