-- The language server: finding or starting it, asking it, and telling what it refused.

local M = {}

--- Starts the server for a buffer in a git repository, or attaches the one that runs; Neovim before 0.11 needs this.
---@param buffer integer
---@return integer? client_id
function M.attach(buffer)
  local root = vim.fs.root(buffer, '.git')
  if vim.bo[buffer].buftype ~= '' or not root then
    return
  end
  local config = vim.tbl_extend('force', require('pactify.config').server(), { root_dir = root })
  return vim.lsp.start(config, { bufnr = buffer })
end

--- The server of the current buffer's repository, else of the working folder's, else any that runs.
---@return vim.lsp.Client?
function M.get()
  local here = vim.lsp.get_clients({ name = 'pactify', bufnr = 0 })[1]
  if here then
    return here
  end
  local root = vim.fs.root(0, '.git') or vim.fs.root(vim.fn.getcwd(), '.git')
  local running = vim.lsp.get_clients({ name = 'pactify' })
  for _, client in ipairs(running) do
    if client.root_dir == root then
      return client
    end
  end
  if root then
    local config = vim.tbl_extend('force', require('pactify.config').server(), { root_dir = root })
    local id = vim.lsp.start(config, { attach = false })
    return id and vim.lsp.get_client_by_id(id)
  end
  return running[1]
end

--- Asks the server; `done` gets the answer. A refusal is shown, unless `refused` takes it.
---@param method string
---@param params table
---@param done fun(result: any)
---@param refused? fun(data: pactify.ErrorData): boolean Whether it took care of the refusal.
function M.request(method, params, done, refused)
  local client = M.get()
  if not client then
    return M.tell({
      code = 'noRepository',
      message = 'there is no git repository here',
      next = 'open a file in one, or change the working folder',
    })
  end
  local function answered(err, result)
    if not err then
      return done(result)
    end
    local data = type(err.data) == 'table' and err.data
      or { code = err.code, message = err.message, next = 'run :checkhealth pactify' }
    if not (refused and refused(data)) then
      M.tell(data)
    end
  end
  if vim.fn.has('nvim-0.11') == 1 then
    client:request(method, params, answered)
  else
    client.request(method, params, answered)
  end
end

--- Waits for an answer, for completion and health; nil if there is none in time.
---@param method string
---@param params table
---@param patience integer Milliseconds.
function M.ask(method, params, patience)
  local answer
  M.request(method, params, function(result)
    answer = result
  end, function()
    answer = false
    return true
  end)
  vim.wait(patience, function()
    return answer ~= nil
  end, 10)
  return answer or nil
end

--- What was refused, why, and what to do; every path concerned goes into the quickfix list.
---@param data pactify.ErrorData
---@param root? string The checkout that the paths are in.
function M.tell(data, root)
  vim.notify(('pactify: %s (%s)\n%s'):format(data.message, data.code, data.next), vim.log.levels.ERROR)
  if data.conflicts and #data.conflicts > 0 then
    local items = vim.tbl_map(function(conflict)
      local filename = root and vim.fs.joinpath(root, conflict.path)
      return { filename = filename, text = ('%s: %s'):format(conflict.path, conflict.detail) }
    end, data.conflicts)
    vim.fn.setqflist({}, ' ', { title = 'pactify: ' .. data.message, items = items })
    vim.cmd('botright copen')
  end
end

return M
