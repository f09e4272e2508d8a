-- Approve: the person reads what a repository or a brief wants to run, and decides once about exactly this text.

local client = require('pactify.client')
local ui = require('pactify.ui')

local M = {}

--- Asks about `approval`, keeps the answer, then goes on; nothing if nobody decides.
local function decide(approval, go_on)
  local function answer(decision)
    local params = { kind = approval.kind, repository = approval.repository, text = approval.text, decision = decision }
    client.request(require('pactify.protocol').request.approve, params, go_on)
  end
  local wants = approval.kind == 'setup' and '%s wants to run this in each new tree, with your rights:'
    or 'The brief for %s wants its result verified by running this, with your rights:'
  local detail = { wants:format(vim.uri_to_fname(approval.repository)), '' }
  ui.choose('May it run?', {
    { 'Allow exactly this', function() answer('allow') end },
    { 'Run jobs without it', function() answer('deny') end },
    { 'Decide later' },
  }, vim.list_extend(detail, ui.lines(approval.text)))
end

--- Like `client.request`; what needs an approval is asked for, and then sent again. Nothing is sent twice: not before the
--- server that `sent.to` names has refused it, or is gone.
function M.request(method, params, done, sent)
  if sent.to and vim.lsp.get_client_by_id(sent.to) then return ui.say('it is being sent') end
  local server = client.get()
  sent.to = server and server.id
  client.request(method, params, done, function(data)
    sent.to = nil
    local function again() M.request(method, params, done, sent) end
    -- After the answer was handled: a plain `vim.ui.select` blocks.
    if data.approval then vim.schedule(function() decide(data.approval, again) end) end
    return data.approval ~= nil
  end)
end

return M
