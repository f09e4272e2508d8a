-- Buffers of the checkout's files: found, and shown anew after something was written. One with text of its own is never
-- touched.

local M = {}

--- The loaded buffer with this file.
function M.of_file(root, file)
  local path = file.pathBytes and vim.uri_decode(file.pathBytes) or file.path
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(vim.fs.joinpath(root, path), '*?[{\\,') .. '$')
  return buffer > 0 and vim.api.nvim_buf_is_loaded(buffer) and buffer or nil
end

--- Shows what is on the disk in all buffers of a checkout that hold no text of their own.
function M.reload(root)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local is_file = vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == ''
    if is_file and not vim.bo[buffer].modified and vim.startswith(vim.api.nvim_buf_get_name(buffer), root .. '/') then
      local before = vim.bo[buffer].autoread
      vim.bo[buffer].autoread = true
      vim.cmd('silent! checktime ' .. buffer)
      vim.bo[buffer].autoread = before
    end
  end
end

return M
