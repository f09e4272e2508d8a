-- A job's question: announced, never in the way, answered when the person wants to.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now, heard = kit.check, kit.now, kit.heard

kit.start('README.md')
vim.cmd('Pactify delegate')
check('a brief is opened', 20, function() return vim.startswith(vim.api.nvim_buf_get_name(0), 'pactify://brief') end)
for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
  if vim.startswith(line, 'permissions:') then
    vim.api.nvim_buf_set_lines(0, number - 1, number, false, { 'permissions: ask' })
  end
end
vim.api.nvim_buf_set_lines(0, -2, -1, false, { 'Ask me' })
vim.cmd('Pactify delegate')
check(
  'the question is announced, with how to answer',
  30,
  function() return heard('ago): step 1 · :Pactify answer') end
)
now('nobody was asked yet', not heard('asks (Ask me'))
vim.cmd('Pactify jobs')
local window = vim.api.nvim_get_current_win()
check(
  'the list shows it',
  10,
  function()
    return kit.text_of(window):find('waiting', 1, true) and kit.text_of(window):find('waits for you: step 1', 1, true)
  end
)
kit.answers = { 'Read all of it first' }
kit.press('y')
check('all of it can be read', 10, function()
  local name = vim.api.nvim_buf_get_name(0)
  return vim.startswith(name, 'pactify://asks/') and kit.text_of(0) == 'echo one && rm -rf two\n'
end)
vim.api.nvim_set_current_win(window)
kit.said, kit.answers = {}, { false }
kit.press('y')
check('the answers say what they mean before what the agent calls them', 10, function()
  local asked = 'asker asks %(Ask me, %w+%): step 1\nreject always: Allow\nreject once: Yes\nallow once: No'
  return vim.iter(kit.said):any(function(line) return line:find(asked) ~= nil end)
end)
check('what was asked is shown no longer', 10, function() return #kit.windows('pactify://question') == 0 end)
now('and a question without an answer stays', kit.text_of(window):find('waits for you: step 1', 1, true))

-- From a text, with a picker that floats: the job, then the answer.
vim.cmd.wincmd('t')
vim.cmd.only()
local text = vim.api.nvim_get_current_win()
kit.float()
vim.cmd('Pactify answer')
kit.pick('Ask me')
check('all of it is shown', 10, function() return #kit.windows('pactify://question') == 1 end)
kit.pick(false)
check('until the picker is left', 10, function() return #kit.windows('pactify://question') == 0 end)
now('which leads back to the text', vim.api.nvim_get_current_win() == text)
vim.cmd('Pactify answer')
kit.pick('Ask me')
kit.pick('allow once: No')
check('with an answer the job goes on', 30, function() return heard('Ask me: changed') end)
now('and the text is where it was', vim.api.nvim_get_current_win() == text and #kit.windows('pactify://question') == 0)
kit.leave()
