-- Telling and asking. Questions go through `vim.ui.select`, so that a picker of the person's can show them; nothing here
-- waits for an answer.

local M = {}

--- Says something in one line that fits, so that nobody has to press ENTER; `:messages` of a notifier has no more.
function M.say(text, level)
  text = 'pactify: ' .. text:gsub('%s*\n%s*', ' · ')
  local room = math.max(vim.o.columns - 16, 20)
  if vim.fn.strdisplaywidth(text) > room then text = vim.fn.strcharpart(text, 0, room - 1) .. '…' end
  vim.notify(text, level)
end

--- Says something whole: what went wrong, and what to do.
function M.complain(text) vim.notify('pactify: ' .. text, vim.log.levels.ERROR) end

--- The buffer of this name, which is no file: not modifiable, gone with its window. `:w` in it is an error of Neovim's own.
---@param name string
---@param lines string[]
---@return integer buffer
function M.scratch(name, lines)
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(name, '*?[{\\,') .. '$')
  if buffer <= 0 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.bo[buffer].bufhidden, vim.bo[buffer].undolevels = 'wipe', -1
    vim.api.nvim_buf_set_name(buffer, name)
    vim.b[buffer].pactify_root = require('pactify.client').root()
  end
  M.fill(buffer, lines)
  return buffer
end

--- Replaces the text of a buffer that nobody can edit.
function M.fill(buffer, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable, vim.bo[buffer].modified = false, false
end

--- A list of lines of a text; each is one line of a buffer.
function M.lines(text) return vim.split((text:gsub('\n$', '')), '\n', { plain = true }) end

--- Opens lines below, in a window of their own that `q` closes.
---@param name string
---@param lines string[]
---@param filetype? string
---@return integer window
function M.below(name, lines, filetype)
  local buffer = M.scratch(name, lines)
  local function rows(sum, line) return sum + math.max(math.ceil(vim.fn.strdisplaywidth(line) / vim.o.columns), 1) end
  local high = vim.iter(lines):fold(0, rows)
  vim.cmd(('botright %dsplit'):format(math.max(math.min(high, math.floor(vim.o.lines / 2)), 3)))
  local window = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(window, buffer)
  vim.wo[window].wrap = true
  if filetype then pcall(vim.api.nvim_set_option_value, 'filetype', filetype, { buf = buffer }) end
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, nowait = true })
  return window
end

--- Opens the help at a tag; not by `:help`, which needs somebody to have made its index.
---@param tag string
function M.help(tag)
  M.below('pactify://help', vim.fn.readfile(vim.api.nvim_get_runtime_file('doc/pactify.txt', false)[1]), 'help')
  vim.cmd(('call search("\\*%s\\*", "w") | normal! zt'):format(tag))
end

---@alias pactify.Choice {[1]: string, [2]: fun()?} A label, and what happens when it is chosen.

--- Asks for one of several things; nothing happens without an answer.
---@param question string One line.
---@param choices pactify.Choice[]
---@param detail? string[] What the question is about, shown while it is open.
function M.choose(question, choices, detail)
  local here = vim.api.nvim_get_current_win()
  local window = detail and #detail > 0 and M.below('pactify://question', detail) or nil
  if window then vim.cmd.redraw() end
  M.select(question, choices, function(choice) return choice[1] end, function(choice)
    local is_closed = window and pcall(vim.api.nvim_win_close, window, true)
    if is_closed then pcall(vim.api.nvim_set_current_win, here) end
    if choice and choice[2] then choice[2]() end
  end)
end

--- Like `vim.ui.select`.
function M.select(prompt, items, label, done)
  vim.ui.select(items, { prompt = prompt, kind = 'pactify', format_item = label }, done)
end

--- Those of the words that begin so, for completion.
function M.starting_with(start, words)
  return vim.tbl_filter(function(word) return vim.startswith(word, start) end, words)
end

--- How long ago a time of the wire (RFC 3339, UTC) was: `now`, `5m`, `3h`, `2d`.
function M.age(at)
  local form = '%Y-%m-%dT%H:%M:%S'
  -- Both are read as local times, so that the zone cancels out.
  local seconds = vim.fn.strptime(form, os.date('!' .. form)) - vim.fn.strptime(form, at:sub(1, 19))
  if seconds < 60 then return 'now' end
  if seconds < 3600 then return ('%dm'):format(seconds / 60) end
  return seconds < 86400 and ('%dh'):format(seconds / 3600) or ('%dd'):format(seconds / 86400)
end

return M
