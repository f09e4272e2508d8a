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
local function health()
  vim.cmd('checkhealth pactify')
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
end
local told = health()
now('and of :checkhealth', told:find('ERROR no-such-server is not executable', 1, true))
now('with what to do', told:find('install pactify-lsp, or set `vim.g.pactify', 1, true))
vim.g.pactify = { cmd = { 'false' }, colour = 'red' }
told = health()
now('a server that ends at once is no server', told:find('ERROR false ended with code 1\n', 1, true))
now('and what is not understood is said again', told:find('ERROR vim.g.pactify.colour is not known', 1, true))
now('with where to read on', told:find('see :help |g:pactify|', 1, true) and not told:find('is understood', 1, true))
vim.g.pactify = { cmd = cmd }

-- Not for every buffer: by a command, or as Neovim's own way has it.
local there, leave = kit.another({ cmd = cmd, enable = false })
local function clients() return there('return #vim.lsp.get_clients({ name = "pactify" })') end
there('vim.cmd.edit("README.md")')
vim.wait(300)
now('with enable = false a buffer starts no server', clients() == 0)
there('vim.cmd("Pactify jobs")')
kit.check('a command does', 20, function() return clients() == 1 end)
leave()
if vim.lsp.enable then
  local that, leave_that = kit.another({ cmd = cmd, enable = false })
  that('vim.lsp.enable("pactify") vim.cmd.edit("README.md")')
  kit.check('so does vim.lsp.enable', 20, function()
    local one = 'vim.lsp.get_clients({ name = "pactify", bufnr = 0 })[1]'
    return that(('local one = %s return one ~= nil and one.initialized == true'):format(one))
  end)
  that('vim.cmd("Pactify jobs")')
  now('which commands then ask', that('return #vim.lsp.get_clients({ name = "pactify" })') == 1)
  leave_that()
end

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

told = health()
now('the client is healthy', told:find('vim.g.pactify is understood', 1, true))
now('the server answers', told:find('pactify-lsp ', 1, true) and told:find('what the server finds', 1, true))
now('and finds the harness', told:find('codex', 1, true))
kit.leave()
