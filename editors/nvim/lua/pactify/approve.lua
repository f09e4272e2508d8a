-- Approve: the person reads what a repository or a brief wants to run, and decides once about exactly this text.

local client = require('pactify.client')
local protocol = require('pactify.protocol')

local M = {}

--- Asks about `approval`, keeps the answer, then goes on; nothing if nobody decides.
---@param approval pactify.Approval
---@param go_on fun()
local function decide(approval, go_on)
  local wants = approval.kind == 'setup' and '%s wants to run this in each new tree, with your rights:\n\n%s\n'
    or 'The brief for %s wants its result verified by running this, with your rights:\n\n%s\n'
  local question = wants:format(vim.uri_to_fname(approval.repository), approval.text)
  local answer = vim.fn.confirm(question, '&Allow\n&Run jobs without it\n&Nothing', 3, 'Warning')
  if answer ~= 1 and answer ~= 2 then
    return
  end
  local params = {
    kind = approval.kind,
    repository = approval.repository,
    text = approval.text,
    decision = answer == 1 and 'allow' or 'deny',
  }
  client.request(protocol.request.approve, params, go_on)
end

--- Like `client.request`; what needs an approval is asked for, and then sent again.
---@param method string
---@param params table
---@param done fun(result: any)
function M.request(method, params, done)
  client.request(method, params, done, function(data)
    if not data.approval then
      return false
    end
    -- After the answer was handled: asking blocks.
    vim.schedule(function()
      decide(data.approval, function()
        M.request(method, params, done)
      end)
    end)
    return true
  end)
end

return M
