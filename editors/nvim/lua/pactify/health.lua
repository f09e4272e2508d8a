-- `:checkhealth pactify`: Neovim, the server, and what the server finds.

local M = {}

function M.check()
  local health = vim.health
  health.start('pactify: the client')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  elseif vim.fn.has('nvim-0.10') == 1 then
    health.ok('Neovim 0.10: the server is started by an autocommand; later versions use vim.lsp.enable()')
  else
    health.error('Neovim is too old', 'install Neovim 0.10 or later')
  end

  health.start('pactify: the server')
  local program = require('pactify.config').get().cmd[1]
  if vim.fn.executable(program) == 0 then
    local advice = 'install pactify-lsp, or set `vim.g.pactify = { cmd = { "/path/to/pactify-lsp", "--stdio" } }`'
    return health.error(('%s is not executable'):format(program), advice)
  end
  local version = vim.system({ program, '--version' }, { text = true, timeout = 5000 }):wait()
  if version.code ~= 0 then
    return health.error(('%s does not start'):format(program), vim.trim(version.stderr or ''))
  end
  health.ok(vim.trim(version.stdout))

  local protocol = require('pactify.protocol')
  local answer = require('pactify.client').ask(protocol.request.doctor, vim.empty_dict(), 20000)
  if not answer then
    return health.warn('the server did not answer', 'open a file in a git repository, then see :LspLog')
  end
  health.start('pactify: what the server finds')
  for _, finding in ipairs(answer.findings) do
    local text = finding.title .. (finding.detail and ': ' .. finding.detail or '')
    local report = { error = health.error, warning = health.warn, ok = health.ok }
    report[finding.severity](text, finding.next and { finding.next } or nil)
  end
end

return M
