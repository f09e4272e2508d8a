-- `:checkhealth pactify`: Neovim, the configuration, the server, and what the server finds.

local M = {}

--- How long the server and the doctor may take, in milliseconds.
local patience = 30000

local function check_client()
  vim.health.start('pactify: the client')
  local told = vim.fn.has('nvim-0.10') == 1 and vim.health.ok or vim.health.error
  told(('Neovim %s; 0.10 or later is needed'):format((vim.version --[[@as fun(): vim.Version]])()))
  local _, problems = require('pactify.config').get()
  vim.iter(problems):each(function(problem) vim.health.error(problem, 'see :help g:pactify') end)
  if #problems == 0 then vim.health.ok('vim.g.pactify is understood') end
end

local function check_server()
  vim.health.start('pactify: the server')
  local program = require('pactify.config').get().cmd[1]
  if vim.fn.executable(program) == 0 then
    local advice = 'install pactify-lsp, or set `vim.g.pactify = { cmd = { "/path/to/pactify-lsp", "--stdio" } }`'
    return vim.health.error(('%s is not executable'):format(program), advice)
  end
  local version = vim.system({ program, '--version' }, { text = true, timeout = 20000 }):wait()
  if version.code ~= 0 then
    local said = vim.trim(version.stderr or '')
    return vim.health.error(('%s ended with code %d'):format(program, version.code), said ~= '' and { said } or {})
  end
  vim.health.ok(vim.trim(version.stdout or ''))
  return true
end

function M.check()
  check_client()
  if not check_server() then return end
  local request = require('pactify.protocol').request
  local answer = require('pactify.client').ask(request.doctor, vim.empty_dict(), patience)
  if not answer then
    return vim.health.warn('the server did not answer', 'open a file in a git repository; :LspLog has what it said')
  end
  vim.health.start('pactify: what the server finds')
  local report = { error = vim.health.error, warning = vim.health.warn, ok = vim.health.ok }
  for _, finding in ipairs(answer.findings) do
    local text = finding.title .. (finding.detail and ': ' .. finding.detail or '')
    report[finding.severity](text, finding.next and { finding.next } or nil)
  end
end

return M
