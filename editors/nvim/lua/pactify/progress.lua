-- Progress of running jobs, as the server reports it to every client (`$/progress`).
--
-- `vim.lsp.status()` is left alone: it hands each message out once, to whoever asks first.

local M = {}

---@type table<string, {title: string, message?: string}>
local running = {}

--- Takes the data of an `LspProgress` event.
function M.heard(data)
  local value = data.params.value
  local key = data.client_id .. ' ' .. data.params.token
  if value.kind == 'end' then
    running[key] = nil
  else
    local before = running[key] or {}
    running[key] = { title = value.title or before.title, message = value.message or before.message }
  end
  vim.cmd.redrawstatus()
end

--- `codex: Fix the parser: runs cargo test`, or how many run.
---@return string
function M.statusline()
  local count = vim.tbl_count(running)
  local _, only = next(running)
  if count == 0 then
    return ''
  end
  local text = count > 1 and ('pactify: %d running'):format(count) or table.concat({ only.title, only.message }, ': ')
  return (text:gsub('%%', '%%%%'))
end

return M
