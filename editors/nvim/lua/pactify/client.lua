-- The language server: finding or starting it, asking it, hearing it, and telling what it refused.

local protocol = require('pactify.protocol')
local ui = require('pactify.ui')

local M = {}

--- How long a server may take until it can be asked, and until it has ended, in milliseconds.
local start_patience, end_patience = 60000, 15000
--- A server that dies more often than this within so many seconds is not started again by itself.
local most_restarts, restart_window = 3, 300

--- When servers were started again after they had died; and whether that was too often.
local restarts, is_given_up = {}, false

--- Another editor may have applied, or undone: then files are others than the buffers show.
local function changed(_, params, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  if params.state == 'finished' and client then require('pactify.buffers').reload(client.root_dir) end
  for _, name in ipairs({ 'pactify.board', 'pactify.preview' }) do
    if package.loaded[name] then package.loaded[name].refresh(params.jobId) end
  end
end

--- Says how a job ended, above all. Error is 1 in the protocol and 4 in Neovim; it is told whole, with what to do.
local function show_message(_, params)
  if params.type == 1 then return ui.complain(params.message) end
  ui.say(params.message, 5 - params.type)
end

--- A question of a job's must not land in what the person is typing: it is announced, and answered when they want to.
local function show_question(_, params)
  ui.say(params.message:match('[^\n]*') .. ' · :Pactify answer', vim.log.levels.WARN)
  return vim.NIL
end

local function on_exit(code, signal, id)
  -- Once Neovim has let go of it.
  vim.defer_fn(function()
    require('pactify.progress').forget(id)
    -- Somebody asked it to end.
    if code == 0 and signal == 0 or vim.v.exiting ~= vim.NIL then return end
    restarts = vim.tbl_filter(function(at) return os.time() - at < restart_window end, restarts)
    is_given_up = #restarts >= most_restarts
    if is_given_up then return ui.complain('the server died again; your jobs go on. :Pactify restart starts it') end
    table.insert(restarts, os.time())
    ui.say('the server died and is started again; your jobs go on', vim.log.levels.WARN)
    M.attach_all()
  end, 100)
end

--- The server as `vim.lsp.config` wants it.
---@return vim.lsp.Config
function M.server()
  return {
    name = 'pactify',
    cmd = require('pactify.config').get().cmd,
    root_markers = { '.git' },
    workspace_required = true,
    init_options = { pactify = { changes = true } },
    handlers = {
      ['window/showMessage'] = show_message,
      ['window/showMessageRequest'] = show_question,
      [protocol.notification.changed] = changed,
    },
    on_exit = on_exit,
  }
end

function M.is_installed() return vim.fn.executable(require('pactify.config').get().cmd[1]) == 1 end

local function start(root, options)
  -- Neovim would complain about it in every buffer; commands and :checkhealth do, when they are asked.
  if not M.is_installed() then return end
  local chosen = vim.lsp.config and vim.lsp.config['pactify'] or M.server()
  return vim.lsp.start(vim.tbl_extend('force', chosen, { root_dir = root }) --[[@as vim.lsp.ClientConfig]], options)
end

--- Starts the server for a buffer in a git repository, or attaches the one that runs.
function M.attach(buffer)
  local is_file = not is_given_up and vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == ''
  local root = is_file and vim.fs.root(buffer, '.git')
  if root and #vim.lsp.get_clients({ name = 'pactify', bufnr = buffer }) == 0 then start(root, { bufnr = buffer }) end
end

function M.attach_all() vim.iter(vim.api.nvim_list_bufs()):each(M.attach) end

--- The repository that a command is about: the current buffer's, or the one that a buffer of ours was made for, else the
--- working folder's.
function M.root() return vim.b.pactify_root or vim.fs.root(0, '.git') or vim.fs.root(vim.fn.getcwd(), '.git') end

--- The server of the current buffer's repository, else of the working folder's, else any that runs; started if need be,
--- but `by_itself`, without a person who wants it, not one that kept dying.
---@return vim.lsp.Client?
function M.get(by_itself)
  local here = vim.lsp.get_clients({ name = 'pactify', bufnr = 0 })[1]
  if here then return here end
  local root = M.root()
  local running = vim.lsp.get_clients({ name = 'pactify' })
  local same = vim.iter(running):find(function(client) return client.root_dir == root end)
  if same or not root then return same or running[1] end
  is_given_up = is_given_up and by_itself == true
  local id = not is_given_up and start(root, { attach = false }) or nil
  return id and vim.lsp.get_client_by_id(id)
end

--- The repository of the server that is asked now, as the wire names it.
---@return string?
function M.repository()
  local client = M.get()
  return client and client.root_dir and vim.uri_from_fname(client.root_dir)
end

--- Goes on once something holds, or after `patience`.
local function wait(holds, patience, act)
  if holds() or patience <= 0 then return act() end
  vim.defer_fn(function() wait(holds, patience - 20, act) end, 20)
end

--- Asks the server; `done` gets the answer. A refusal is shown, unless `refused` takes it.
---@param method string
---@param params table
---@param done? fun(result: any)
---@param refused? fun(data: pactify.ErrorData): boolean Whether it took care of the refusal.
function M.request(method, params, done, refused)
  local function refuse(data)
    if not (refused and refused(data)) then M.tell(data) end
  end
  local function broken(code, message, next)
    refuse({ code = code, message = message, next = next or 'run :checkhealth pactify' })
  end
  local client = M.get()
  if not M.is_installed() then return broken('internal', 'pactify-lsp is not installed') end
  if not client then
    return broken('noRepository', 'there is no git repository here', 'open a file in one, or change the working folder')
  end
  local function answered(err, result)
    if not err then return done and done(result) end
    if type(err.data) == 'table' then return refuse(err.data) end
    broken(err.code, err.message)
  end
  local function is_ready() return client.initialized or client.is_stopped and client:is_stopped() end
  wait(is_ready, start_patience, function()
    -- Neovim 0.10 calls it without itself.
    local arguments = vim.list_extend(vim.fn.has('nvim-0.11') == 1 and { client } or {}, { method, params, answered })
    ---@diagnostic disable-next-line: missing-parameter
    local is_sent = client.initialized and client.request(unpack(arguments))
    if not is_sent then broken('internal', 'the server does not run') end
  end)
end

--- Waits for an answer, for completion and health; nil if there is none in time.
---@param method string
---@param params table
---@param patience integer Milliseconds.
function M.ask(method, params, patience)
  local answer ---@type any
  M.request(method, params, function(result) answer = result end, function()
    answer = false
    return true
  end)
  vim.wait(patience, function() return answer ~= nil end, 10)
  return answer or nil
end

--- What was refused, why, and what to do; every path concerned goes into the quickfix list.
---@param data pactify.ErrorData
---@param root? string The checkout that the paths are in, unless it is the one that is asked about.
function M.tell(data, root)
  root = root or M.root()
  ui.complain(('%s (%s)\n%s'):format(data.message, data.code, data.next))
  if data.conflicts and #data.conflicts > 0 then
    local function item(conflict)
      local file = root and vim.fs.joinpath(root, conflict.path)
      return { filename = file, text = ('%s: %s'):format(conflict.path, conflict.detail) }
    end
    vim.fn.setqflist({}, ' ', { title = 'pactify: ' .. data.message, items = vim.tbl_map(item, data.conflicts) })
    vim.cmd('botright copen')
  end
end

--- Ends the servers and starts them again. Jobs don't notice.
function M.restart()
  restarts, is_given_up = {}, false
  local function stop(how, done)
    vim.iter(vim.lsp.get_clients({ name = 'pactify' })):each(how)
    wait(function() return #vim.lsp.get_clients({ name = 'pactify' }) == 0 end, end_patience, done)
  end
  local function start_again()
    M.attach_all()
    if M.get() then ui.say('the server was started again; your jobs go on') end
  end
  local function ask(client) vim.lsp.stop_client(client.id) end
  local function kill(client) client.rpc.terminate() end
  -- One that does not end when it is asked to is ended.
  stop(ask, function() stop(kill, start_again) end)
end

return M
