-- Progress of running jobs, as the server reports it to every client (`$/progress`).
--
-- `vim.lsp.status()` is left alone: it hands each message out once, to whoever asks first.

local M = {}

--- By client and token.
---@type table<string, {client: integer, title: string, message?: string}>
local running = {}

--- Takes the data of an `LspProgress` event.
---@param data {client_id: integer, params: lsp.ProgressParams}
function M.heard(data)
  local value, key = data.params.value, data.client_id .. ' ' .. data.params.token
  local news = { client = data.client_id, title = value.title, message = value.message }
  running[key] = value.kind ~= 'end' and vim.tbl_extend('force', running[key] or {}, news) or nil
  vim.cmd.redrawstatus()
  local board = package.loaded['pactify.board']
  if board then board.refresh() end
end

--- A server is gone, and will end nothing any more.
function M.forget(client)
  for key, job in pairs(running) do
    if job.client == client then running[key] = nil end
  end
  vim.cmd.redrawstatus()
end

--- `codex: Fix the parser: runs cargo test`, or how many run.
function M.statusline()
  local count, _, job = vim.tbl_count(running), next(running)
  if not job then return '' end
  local text = count > 1 and ('pactify: %d running'):format(count) or table.concat({ job.title, job.message }, ': ')
  return (text:gsub('%%', '%%%%'))
end

return M
