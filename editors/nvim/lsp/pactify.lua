-- For `vim.lsp.enable('pactify')`, Neovim 0.11 and later.
return require('pactify.client').server()
