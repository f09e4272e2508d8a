std = 'luajit'
read_globals = { 'vim' }
globals = { 'vim.g', 'vim.b', 'vim.w', 'vim.o', 'vim.bo', 'vim.wo' }
max_line_length = 120
exclude_files = { 'lua/pactify/protocol.lua' }
