-- What is there from the start: one command, its <Plug> maps, and the server for buffers in git repositories. Everything
-- else is loaded when it is first used.

if vim.g.loaded_pactify then return end
vim.g.loaded_pactify = true

vim.api.nvim_create_user_command('Pactify', function(call) require('pactify').run(call) end, {
  nargs = '*',
  range = true,
  desc = 'Hand a coding task to an agent, and take what you want from its result',
  complete = function(_, line, column) return require('pactify').complete(line:sub(1, column)) end,
})

local names = 'delegate fix jobs preview accept reject comment apply apply-selected undo answer cancel resume retry discard '
  .. 'log worktree export doctor restart'
for name in names:gmatch('%S+') do
  local run = ('<Cmd>Pactify %s<CR>'):format(name)
  vim.keymap.set('n', ('<Plug>(pactify-%s)'):format(name), run, { desc = 'pactify: ' .. name })
end
vim.keymap.set('x', '<Plug>(pactify-delegate)', ':Pactify delegate<CR>')
vim.keymap.set('x', '<Plug>(pactify-comment)', ':Pactify comment<CR>')

local config, problems = require('pactify.config').get()
vim.iter(problems):each(function(problem) require('pactify.ui').complain(problem .. ' (:help g:pactify)') end)

local group = vim.api.nvim_create_augroup('pactify', {})
vim.api.nvim_create_autocmd('LspProgress', {
  group = group,
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id) or {}
    if client.name == 'pactify' then require('pactify.progress').heard(event.data) end
  end,
})

-- The server has to know which buffers hold unsaved text before anything is applied over them.
if not config.enable then return end
if vim.lsp.enable and vim.fn.executable(config.cmd[1]) == 1 then vim.lsp.enable('pactify') end
-- Neovim before 0.11, and buffers whose file has no type.
vim.api.nvim_create_autocmd({ 'FileType', 'BufReadPost', 'BufNewFile', 'BufFilePost' }, {
  group = group,
  callback = vim.schedule_wrap(function(event) require('pactify.client').attach(event.buf) end),
})
