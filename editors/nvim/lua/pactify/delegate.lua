-- Delegate: from an open brief, or from words (about the given lines, if there are any), to a job.

local client = require('pactify.client')
local protocol = require('pactify.protocol')

local M = {}

---@param buffer integer
---@param first integer
---@param last integer
---@return string name, string text
local function quoted(buffer, first, last)
  local lines = vim.api.nvim_buf_get_lines(buffer, first - 1, last, false)
  local longest = 2
  for ticks in table.concat(lines, '\n'):gmatch('`+') do
    longest = math.max(longest, #ticks)
  end
  local fence = ('`'):rep(longest + 1)
  local path = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ':t')
  local server = client.get()
  local root = server and server.root_dir
  if root and vim.startswith(vim.api.nvim_buf_get_name(buffer), root .. '/') then
    path = vim.api.nvim_buf_get_name(buffer):sub(#root + 2)
  end
  local name = ('%s, lines %d–%d'):format(path, first, last)
  return name, table.concat({ fence .. vim.bo[buffer].filetype, table.concat(lines, '\n'), fence }, '\n')
end

---@param brief pactify.BriefSource
local function send(brief)
  local server = client.get()
  local params = { brief = brief, repository = server and server.root_dir and vim.uri_from_fname(server.root_dir) }
  require('pactify.approve').request(protocol.request.delegate, params, function(delegated)
    vim.notify(('pactify: job %s is %s'):format(delegated.jobId, delegated.state))
    for _, notice in ipairs(delegated.notices) do
      vim.notify('pactify: ' .. notice, vim.log.levels.WARN)
    end
  end)
end

--- Starts a job; asks for the task unless it is given, or the buffer is a brief.
---@param task string
---@param lines? {[1]: integer, [2]: integer}
function M.start(task, lines)
  local buffer = vim.api.nvim_get_current_buf()
  local name = vim.api.nvim_buf_get_name(buffer)
  if task == '' and not lines and name:match('%.brief%.md$') then
    return send({ uri = vim.uri_from_bufnr(buffer) })
  end
  local about = ''
  local prompt = 'Task: '
  if lines then
    local what, text = quoted(buffer, lines[1], lines[2])
    about = ('\n\nThis is about %s:\n\n%s\n'):format(what, text)
    prompt = ('Task for %s: '):format(what)
  end
  if task ~= '' then
    return send(task .. about)
  end
  vim.ui.input({ prompt = prompt }, function(answer)
    if answer and vim.trim(answer) ~= '' then
      send(answer .. about)
    end
  end)
end

return M
