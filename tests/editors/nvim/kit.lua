-- What the suites share: steps with a time limit each, and a person who answers.
--
-- A suite is run as `nvim --clean -l SUITE.lua` in a repository, with the plugin in 'runtimepath'. The first step that
-- misses its limit ends the run, with what was seen so far. That something does not happen has no limit: it is looked at
-- `now`, after a while or after what follows it.

local M = {}

--- A folder for briefs and signals.
M.folder = assert(vim.env.PACTIFY_FLOW, 'a folder for briefs and signals')
--- What was told and asked, oldest first.
M.said = {}
--- What the person will choose: a part of the label each; `false` closes the question.
M.answers = {}

--- Seconds in which what comes quickly has to come, however busy the machine is.
local least = 60

---@param name string
---@param seconds number In which it has to hold: at once if 0, else more than `least` if that is too short.
---@param condition fun(): any
function M.check(name, seconds, condition)
  seconds = seconds > 0 and math.max(seconds, least) or 0
  local ok = vim.wait(math.floor(seconds * 1000), function() return condition() and true or false end, 20)
  if not ok then
    local log = vim.lsp.log.get_filename()
    local logged = vim.fn.filereadable(log) == 1 and table.concat(vim.fn.readfile(log), '\n') or ''
    local shown = vim.tbl_map(function(window)
      local buffer = vim.api.nvim_win_get_buf(window)
      local name_of, lines = vim.api.nvim_buf_get_name(buffer), vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
      return name_of .. '\n  ' .. table.concat(lines, '\n  ')
    end, vim.api.nvim_tabpage_list_wins(0))
    io.stderr:write(
      ('not ok - %s (%d s)\nsaid: %s\nanswers left: %s\nwindows: %s\nmessages: %s\nlog: %s\n'):format(
        name,
        seconds,
        vim.inspect(M.said),
        vim.inspect(M.answers),
        table.concat(shown, '\n'),
        vim.fn.execute('messages'),
        logged
      )
    )
    vim.cmd('cquit 1')
  end
  io.stdout:write('ok - ' .. name .. '\n')
end

---@param name string
---@param value any
function M.now(name, value)
  M.check(name, 0, function() return value end)
end

vim.notify = function(text) table.insert(M.said, text) end
vim.ui.select = function(items, options, done)
  local labels = vim.tbl_map(options.format_item or tostring, items)
  table.insert(M.said, (options.prompt or '') .. '\n' .. table.concat(labels, '\n'))
  local wanted = table.remove(M.answers, 1)
  -- As pickers do it: not before the asker has returned.
  vim.schedule(function()
    for index, label in ipairs(wanted and labels or {}) do
      if label:find(wanted, 1, true) then return done(items[index], index) end
    end
    done(nil)
  end)
end

--- Puts in its place a picker as people install them: a window that floats, opened some time after the question, and left
--- by keys of its own. It takes `M.pick`.
function M.float()
  vim.ui.select = function(items, options, done)
    local labels = vim.tbl_map(options.format_item or tostring, items)
    table.insert(M.said, (options.prompt or '') .. '\n' .. table.concat(labels, '\n'))
    vim.schedule(function()
      local buffer = vim.api.nvim_create_buf(false, true)
      vim.bo[buffer].bufhidden = 'wipe'
      vim.api.nvim_buf_set_lines(buffer, 0, -1, false, labels)
      local size = { width = 60, height = #labels, row = 1, col = 1 }
      local window = vim.api.nvim_open_win(buffer, true, vim.tbl_extend('error', size, { relative = 'editor' }))
      local function leave_by(key, item)
        vim.keymap.set('n', key, function()
          local chosen = item()
          vim.api.nvim_win_close(window, true)
          vim.schedule(function() done(chosen) end)
        end, { buffer = buffer })
      end
      leave_by('<CR>', function() return items[vim.api.nvim_win_get_cursor(window)[1]] end)
      leave_by('<Esc>', function() end)
    end)
  end
end

--- Chooses what has this in its label, or leaves without an answer, in the picker of `M.float`.
---@param wanted string|false
function M.pick(wanted)
  M.check('a picker floats', least, function() return vim.api.nvim_win_get_config(0).relative ~= '' end)
  if not wanted then return M.press('<Esc>') end
  M.now('with ' .. wanted, vim.fn.search('\\V' .. vim.fn.escape(wanted, '\\'), 'cw') > 0)
  M.press('<CR>')
end

-- Whatever blocks would also block a person's typing.
for _, name in ipairs({ 'confirm', 'inputlist', 'input' }) do
  vim.fn[name] = function(...) error(('a blocking question: %s'):format(vim.inspect({ ... }))) end
end

--- Sends a signal to the server of this Neovim.
---@param signal string
function M.signal(signal)
  local server = vim.iter(vim.api.nvim_get_proc_children(vim.uv.os_getpid())):find(function(child)
    local process = vim.api.nvim_get_proc(child)
    return process and process.name:find('pactify', 1, true)
  end)
  vim.uv.kill(assert(server, 'there is a server'), signal)
end

---@param text string
function M.heard(text)
  return vim.iter(M.said):any(function(line) return line:find(text, 1, true) ~= nil end)
end

--- A brief that the scripted agent follows.
---@param title string
---@param steps any[]
---@return string[]
function M.brief(title, steps)
  local lines = { title, '', '```agent' }
  for _, step in ipairs(steps) do
    table.insert(lines, vim.json.encode(step))
  end
  return vim.list_extend(lines, { '```' })
end

--- Opens a brief as a file.
---@param name string
---@param title string
---@param steps any[]
function M.open_brief(name, title, steps)
  local path = ('%s/%s.brief.md'):format(M.folder, name)
  vim.fn.writefile(M.brief(title, steps), path)
  vim.cmd.edit(path)
end

---@param path string
function M.on_disk(path)
  local file = io.open(vim.fs.joinpath(vim.fn.getcwd(), path), 'rb')
  return file and file:read('*a')
end

---@param window integer
function M.text_of(window)
  return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n') .. '\n'
end

--- The windows of this tab page, by the beginning of their buffer's name.
---@param start string
---@return integer[]
function M.windows(start)
  return vim.tbl_filter(
    function(window) return vim.startswith(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window)), start) end,
    vim.api.nvim_tabpage_list_wins(0)
  )
end

--- Presses keys, with the maps of the current buffer.
---@param keys string
function M.press(keys) vim.api.nvim_feedkeys(vim.keycode(keys), 'mx', false) end

--- Opens a file of the repository.
---@param path string
---@return integer buffer
function M.start(path)
  vim.o.swapfile = false
  vim.cmd.runtime('plugin/pactify.lua')
  vim.cmd.edit(path)
  local buffer = vim.api.nvim_get_current_buf()
  M.check('the server is attached', 20, function()
    local client = vim.lsp.get_clients({ name = 'pactify', bufnr = buffer })[1]
    return client and client.initialized
  end)
  return buffer
end

--- Delegates a brief as a file, and waits until it is over.
---@param title string
---@param steps any[]
function M.finish(title, steps)
  M.open_brief(title:gsub('%W', '-'), title, steps)
  vim.cmd('Pactify delegate')
  M.check(
    ('"%s" ends'):format(title),
    60,
    function() return M.heard(title .. ': changed') or M.heard(title .. ': finished') end
  )
end

--- Starts another Neovim here, with the plugin; `config` is its `vim.g.pactify`, if it is another one.
---@param config? table
---@return fun(code: string, ...: any): any there Runs Lua in it, and gives what that returns.
---@return fun() leave Ends it.
function M.another(config)
  local argv = { vim.v.progpath, '--clean', '--headless', '--embed', '-n' }
  -- Before plugins are loaded, as a person's init.lua would.
  for name, value in pairs({ ['&rtp'] = vim.o.rtp, ['g:pactify'] = config or vim.g.pactify }) do
    vim.list_extend(argv, { '--cmd', ('let %s = %s'):format(name, vim.fn.string(value)) })
  end
  local channel = vim.fn.jobstart(argv, { rpc = true })
  local function there(code, ...) return vim.fn.rpcrequest(channel, 'nvim_exec_lua', code, { ... }) end
  return there,
    function()
      vim.fn.jobstop(channel)
      M.check('the other Neovim ends', 20, function() return vim.fn.jobwait({ channel }, 0)[1] ~= -1 end)
    end
end

--- Ends the servers, and Neovim.
function M.leave()
  for _, client in ipairs(vim.lsp.get_clients({ name = 'pactify' })) do
    -- Neovim 0.10 calls it without itself.
    client.stop(vim.fn.has('nvim-0.11') == 1 and client or nil --[[@as any]])
  end
  M.check('the server ends with its client', 10, function() return #vim.lsp.get_clients({ name = 'pactify' }) == 0 end)
  local left, why = pcall(vim.cmd.qall)
  io.stderr:write(left and '' or why)
  vim.cmd('cquit 1')
end

return M
