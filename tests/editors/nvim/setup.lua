-- What a newcomer meets: configuration errors in words, :help, :checkhealth.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local now, heard = kit.now, kit.heard

local cmd = vim.g.pactify.cmd
vim.g.pactify = { cmd = cmd, enable = 'yes', colour = 'red' }
vim.g.loaded_pactify = nil
kit.start('README.md')
now('what is not known is named', heard('vim.g.pactify.colour is not known; there are cmd, enable'))
now('what does not fit is shown', heard('vim.g.pactify.enable is "yes"; it has to be true or false'))
vim.g.pactify = { cmd = 'pactify-lsp' }
now(
  'a string is no command',
  select(2, require('pactify.config').get())[1]:find('a list of strings: a program and its arguments')
)
vim.g.pactify = { cmd = cmd }

-- Without the server: silence, until it is asked for.
vim.g.pactify = { cmd = { 'no-such-server' } }
kit.said = {}
vim.cmd.edit('src/main.c')
vim.wait(200)
now('a server that is not installed is no error in every buffer', #kit.said == 0 and vim.fn.execute('messages') == '')
vim.cmd('Pactify resume')
now('but of a command', heard('pactify-lsp is not installed (internal)\nrun :checkhealth pactify'))
vim.g.pactify = { cmd = cmd }

-- Help: every tag, from a copy, since the tags file would land in the sources.
local copy = vim.fn.tempname()
vim.fn.mkdir(copy .. '/doc', 'p')
local source = assert(vim.api.nvim_get_runtime_file('doc/pactify.txt', false)[1])
vim.fn.writefile(vim.fn.readfile(source), copy .. '/doc/pactify.txt')
vim.cmd.helptags(copy .. '/doc')
vim.opt.runtimepath:prepend(copy)
for _, tag in ipairs({ 'pactify', ':Pactify', 'g:pactify', 'pactify-keys', 'pactify-preview' }) do
  vim.cmd.help(tag)
  now('help has ' .. tag, vim.fn.expand('%:t') == 'pactify.txt')
end
local text = table.concat(vim.fn.readfile(source), '\n')
for _, name in ipairs(require('pactify').names()) do
  vim.cmd.help(':Pactify-' .. name)
  now('help has :Pactify ' .. name, text:find('<Plug>(pactify-' .. name .. ')', 1, true))
end
for link in text:gmatch('|([^|%s]+)|') do
  now('help leads to ' .. link, #vim.fn.getcompletion(link, 'help') > 0)
end

vim.cmd('checkhealth pactify')
local health = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
now('the client is healthy', health:find('vim.g.pactify is understood', 1, true))
now('the server answers', health:find('pactify-lsp ', 1, true) and health:find('what the server finds', 1, true))
now('and finds the harness', health:find('codex', 1, true))
kit.leave()
