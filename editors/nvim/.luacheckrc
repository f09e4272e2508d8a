std = 'luajit'
read_globals = { 'vim' }
globals = { 'vim.g', 'vim.b', 'vim.w', 'vim.o', 'vim.bo', 'vim.wo', 'vim.opt' }
max_line_length = 120
-- Counts bytes, and signs like `✓` have several; stylua keeps lines within their width.
ignore = { '631' }
exclude_files = { '**/protocol.lua' }
