-- Preview: a tab page with the changed files, and the two sides of the chosen one in diff mode.
--
-- All buffers are scratch: no file, not modifiable, gone with their window. `:w` in one is an error of Neovim's own, so
-- nothing can be applied by saving.

local client = require('pactify.client')
local protocol = require('pactify.protocol')

local M = {}

--- What was shown, by job: only that can be applied.
---@type table<string, pactify.Preview>
M.shown = {}

local signs = { added = 'A', modified = 'M', deleted = 'D', modeChanged = 'm', typeChanged = 'T' }

---@param name string
---@param lines string[]
---@return integer buffer
local function scratch(name, lines)
  local old = vim.fn.bufnr('^' .. vim.fn.escape(name, '*?[{\\') .. '$')
  if old > 0 then
    vim.api.nvim_buf_delete(old, { force = true })
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  local options = { buftype = 'nofile', bufhidden = 'wipe', swapfile = false, modifiable = false, readonly = true }
  for option, value in pairs(options) do
    vim.bo[buffer][option] = value
  end
  return buffer
end

---@param content pactify.Content
local function lines_of(content)
  if content.binary then
    return { ('(not text: %d bytes)'):format(content.size) }
  end
  return vim.split((content.text or ''):gsub('\n$', ''), '\n', { plain = true })
end

---@param file pactify.FileChange
local function describe(file)
  local remarks = {}
  if file.tier == 'sensitive' then
    table.insert(remarks, 'acts by itself')
  elseif file.tier == 'buildInput' then
    table.insert(remarks, 'runs when you build')
  end
  if file.refused then
    table.insert(remarks, 'never applied: ' .. file.refused)
  end
  local remark = #remarks > 0 and (' (%s)'):format(table.concat(remarks, ', ')) or ''
  return ('%s %s%s'):format(signs[file.kind] or '?', file.path, remark)
end

--- Asks for the content of both sides.
---@param job pactify.JobSummary
---@param file pactify.FileChange
---@param done fun(base: string[], result: string[])
local function sides(job, file, done)
  local function content(side, answered)
    local params = { jobId = job.id, side = side, path = file.path, pathBytes = file.pathBytes }
    client.request(protocol.request.content, params, function(answer)
      answered(lines_of(answer))
    end)
  end
  content('base', function(base)
    content('result', function(result)
      done(base, result)
    end)
  end)
end

--- Shows one file's sides to the right of the list.
---@param list integer The list's window.
---@param job pactify.JobSummary
---@param file pactify.FileChange
local function show(list, job, file)
  sides(job, file, function(base, result)
    if not vim.api.nvim_win_is_valid(list) then
      return
    end
    vim.api.nvim_set_current_win(list)
    vim.cmd('diffoff! | silent! only')
    local syntax = vim.filetype.match({ filename = file.path, contents = result }) or ''
    for side, lines in vim.spairs({ base = base, result = result }) do
      vim.cmd('rightbelow vsplit')
      local buffer = scratch(('pactify://%s/%s/%s'):format(job.id, side, file.path), lines)
      vim.api.nvim_win_set_buf(0, buffer)
      vim.bo[buffer].syntax = syntax
      vim.cmd.diffthis()
    end
    vim.api.nvim_win_set_width(list, math.min(40, math.floor(vim.o.columns / 4)))
    vim.cmd('wincmd =')
    vim.api.nvim_set_current_win(list)
  end)
end

--- Shows in a tab page of its own what each merge would change in the checkout.
---@param job pactify.JobSummary
---@param merges pactify.Conflict[]
---@param done fun() When all of them are shown.
function M.merges(job, merges, done)
  local function side(merge, name, answered)
    local params = { jobId = job.id, side = name, path = merge.path, pathBytes = merge.pathBytes }
    client.request(protocol.request.content, params, function(answer)
      answered(lines_of(answer))
    end)
  end
  local function show_from(index)
    local merge = merges[index]
    if not merge then
      return done()
    end
    side(merge, 'current', function(current)
      side(merge, 'merged', function(merged)
        for number, lines in ipairs({ current, merged }) do
          vim.cmd(number == 1 and 'tabnew' or 'rightbelow vsplit')
          local name = ('pactify://%s/%s/%s'):format(job.id, number == 1 and 'current' or 'merged', merge.path)
          vim.api.nvim_win_set_buf(0, scratch(name, lines))
          vim.cmd.diffthis()
        end
        show_from(index + 1)
      end)
    end)
  end
  show_from(1)
end

--- Asks for all pages.
---@param job pactify.JobSummary
---@param done fun(preview: pactify.Preview)
local function ask(job, done)
  local whole
  local function page(cursor)
    client.request(protocol.request.diff_preview, { jobId = job.id, cursor = cursor }, function(preview)
      if whole and whole.changeSet ~= preview.changeSet then
        whole = nil
        return page(nil)
      end
      if whole then
        vim.list_extend(whole.files, preview.files)
      end
      whole = whole or preview
      if preview.next then
        return page(preview.next)
      end
      done(whole)
    end)
  end
  page(nil)
end

--- Opens the preview of a job's changes.
---@param job pactify.JobSummary
---@param done? fun(preview: pactify.Preview)
function M.open(job, done)
  ask(job, function(preview)
    local heading = {
      ('%s: %s'):format(job.harness, job.title),
      require('pactify.jobs').counts(preview.totals),
      '<CR> shows a file, a applies, q closes',
    }
    vim.list_extend(heading, preview.notes)
    table.insert(heading, '')
    local lines = vim.list_extend(vim.deepcopy(heading), vim.tbl_map(describe, preview.files))
    vim.cmd.tabnew()
    local buffer = scratch('pactify://' .. job.id, lines)
    vim.api.nvim_win_set_buf(0, buffer)
    vim.bo[buffer].filetype = 'pactify'
    local window = vim.api.nvim_get_current_win()
    vim.wo[window].winfixwidth = true
    M.shown[job.id] = preview

    local function map(key, action)
      vim.keymap.set('n', key, action, { buffer = buffer, nowait = true })
    end
    map('<CR>', function()
      local file = preview.files[vim.api.nvim_win_get_cursor(0)[1] - #heading]
      if file then
        show(window, job, file)
      end
    end)
    map('a', function()
      require('pactify.apply').start(job)
    end)
    map('q', '<Cmd>tabclose<CR>')
    if preview.files[1] then
      vim.api.nvim_win_set_cursor(window, { #heading + 1, 0 })
      show(window, job, preview.files[1])
    end
    if done then
      done(preview)
    end
  end)
end

return M
