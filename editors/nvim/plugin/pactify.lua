-- What is there from the start: one command, and the server for buffers in git repositories. Everything else is loaded
-- when it is first used.

if vim.g.loaded_pactify then
  return
end
vim.g.loaded_pactify = true

vim.api.nvim_create_user_command('Pactify', function(call)
  require('pactify').run(call)
end, {
  nargs = '*',
  range = true,
  desc = 'Hand a coding task to an agent, and take what you want from its result',
  complete = function(_, line, column)
    return require('pactify').complete(line:sub(1, column))
  end,
})

for _, verb in ipairs({ 'delegate', 'jobs', 'preview', 'apply', 'undo', 'cancel' }) do
  vim.keymap.set('n', ('<Plug>(pactify-%s)'):format(verb), ('<Cmd>Pactify %s<CR>'):format(verb))
end
vim.keymap.set('x', '<Plug>(pactify-delegate)', ':Pactify delegate<CR>')

local group = vim.api.nvim_create_augroup('pactify', {})
vim.api.nvim_create_autocmd('LspProgress', {
  group = group,
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'pactify' then
      require('pactify.progress').heard(event.data)
    end
  end,
})

-- The server has to know which buffers hold unsaved text before anything is applied over them.
if (vim.g.pactify or {}).enable == false then
  return
end
if vim.lsp.enable then
  vim.lsp.enable('pactify')
else
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    callback = function(event)
      require('pactify.client').attach(event.buf)
    end,
  })
end
