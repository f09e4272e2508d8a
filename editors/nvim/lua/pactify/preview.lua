-- Preview: a tab page with the changed files, and the two sides of the chosen one in diff mode.
--
-- Here the person looks and marks; only `:Pactify apply` writes. All buffers are scratch: no file, not modifiable, gone
-- with their window, so that nothing which saves buffers can accept anything.

local client = require('pactify.client')
local request = require('pactify.protocol').request
local ui = require('pactify.ui')

local M = {}

--- Bytes: a longer text is shown without its language's help, which would take longer than reading. Files of a page.
local most_coloured, page_size = 512 * 1024, 1000

---@alias pactify.Mark 'accepted'|'rejected'

--- What was decided about a file, or about its parts by group; and all parts, once it was shown.
---@alias pactify.FileMarks {whole?: pactify.Mark, parts: table<string, pactify.Mark>, groups?: pactify.GroupView[]}

---@class pactify.View
---@field job pactify.JobSummary
---@field preview pactify.Preview All pages of it.
---@field marks table<string, pactify.FileMarks> By `key` of the file.
---@field list integer The list's buffer.
---@field window integer The list's window.
---@field sides integer[] The windows of the two sides.
---@field first integer The list's line before the first file.
---@field file? pactify.FileChange The one that is shown.
---@field hunks pactify.HunkView[] Its hunks.
---@field merging boolean Whether its merge is shown instead.
---@field unseen? boolean Whether its result came while nobody asked for it: it is shown before it can be applied.
---@field turn integer Counts what was asked for, so that late answers are dropped.

--- By job. What is here was shown: only that can be applied.
---@type table<string, pactify.View>
M.views = {}

local space = vim.api.nvim_create_namespace('pactify.preview')

local kinds = { added = 'A', modified = 'M', deleted = 'D', modeChanged = 'm', typeChanged = 'T' }
local looks = { accepted = { '✓', 'DiagnosticOk' }, rejected = { '✗', 'DiagnosticError' } }
looks.partly, looks.applied, looks.none = { '◐', 'DiagnosticWarn' }, { '=', 'Comment' }, { ' ', 'Normal' }
local titles = { base = 'before', result = 'after', current = 'your checkout', merged = 'merged, not written' }

--- What a file is known by, whatever its name holds.
local function key(file) return file.pathBytes and 'b:' .. file.pathBytes or 'p:' .. file.path end

function M.name(file) return { path = file.path, pathBytes = file.pathBytes } end

local function marks_of(view, file)
  view.marks[key(file)] = view.marks[key(file)] or { parts = {} }
  return view.marks[key(file)]
end

local function is_open(view)
  return vim.api.nvim_win_is_valid(view.window) and vim.api.nvim_win_get_buf(view.window) == view.list
end

local function here()
  local shown = vim.fn.tabpagebuflist()
  return vim.iter(vim.tbl_values(M.views)):find(function(view) return vim.list_contains(shown, view.list) end)
end

function M.job_here()
  local view = here()
  return view and view.job.id
end

--- The first line and the number of lines of a hunk in a side.
local function extent(hunk, side)
  if side == 1 then return hunk.oldStart, #hunk.oldLines end
  return hunk.newStart, #hunk.newLines
end

local function hunk_here(view)
  local side = vim.fn.index(view.sides, vim.api.nvim_get_current_win()) + 1
  local line = vim.api.nvim_win_get_cursor(0)[1]
  for _, hunk in ipairs(side > 0 and view.hunks or {}) do
    local first, count = extent(hunk, side)
    -- An empty side names the line that it follows: that one and the next are beside it.
    if line >= first and line <= (count > 0 and first + count - 1 or first + 1) then return hunk end
  end
end

--- The file under the cursor in the list, else the one shown.
local function file_here(view)
  if vim.api.nvim_get_current_win() ~= view.window then return view.file end
  return view.preview.files[vim.api.nvim_win_get_cursor(0)[1] - view.first]
end

local function look_of(view, file)
  local marks = marks_of(view, file)
  if marks.whole or next(marks.parts) then return looks[marks.whole or 'partly'] end
  return file.outlook and file.outlook.kind == 'already' and looks.applied or looks.none
end

local function remarks(file)
  local outlook = file.outlook and file.outlook.kind
  return table.concat(
    vim.tbl_values({
      file.tier == 'sensitive' and 'acts by itself' or file.tier == 'buildInput' and 'runs when you build' or nil,
      file.refused and 'never applied: ' .. file.refused or nil,
      file.renamedFrom and 'was ' .. file.renamedFrom.path or nil,
      file.renamedTo and 'is now ' .. file.renamedTo.path or nil,
      (outlook == 'merge' or outlook == 'conflict') and outlook or nil,
    }),
    ', '
  )
end

--- Fills the list. What says of a file how it looks is syntax: Neovim applies that to the lines on the screen only.
local function list(view)
  local preview, lines, paints = view.preview, {}, {}
  local function add(line, group)
    table.insert(lines, line)
    paints[#lines - 1] = group and { end_col = #line, hl_group = group }
  end
  add(('%s: %s'):format(view.job.harness, view.job.title), 'Title')
  add(require('pactify.jobs').counts({ changes = preview.totals }))
  vim.iter(preview.notes):each(function(note) add(note, 'Comment') end)
  for _, change in ipairs(preview.outside or {}) do
    local group = change.weight == 'dangerous' and 'DiagnosticError' or 'DiagnosticWarn'
    add(('! outside: %s %s%s'):format(change.place, change.what, change.restored and ' (put back)' or ''), group)
  end
  add('')
  view.first = #lines
  for _, file in ipairs(preview.files) do
    local said = remarks(file)
    local name = ('%s %s %s'):format(look_of(view, file)[1], kinds[file.kind] or '?', file.path)
    table.insert(lines, said ~= '' and ('%s  (%s)'):format(name, said) or name)
  end
  local at = vim.api.nvim_win_get_cursor(view.window)
  ui.fill(view.list, lines)
  vim.api.nvim_buf_clear_namespace(view.list, space, 0, -1)
  for row, paint in pairs(paints) do
    vim.api.nvim_buf_set_extmark(view.list, space, row, 0, paint)
  end
  pcall(vim.api.nvim_win_set_cursor, view.window, at)
end

--- Shows beside the changed lines what was decided about them.
local function sign(view)
  local marks = view.file and marks_of(view, view.file)
  for side, window in ipairs(view.sides) do
    local buffer = vim.api.nvim_win_get_buf(window)
    vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
    for _, hunk in ipairs(marks and not view.merging and view.hunks or {}) do
      local decided = marks.whole or marks.parts[hunk.id] or hunk.accepted and 'applied'
      local look, first, count = looks[decided], extent(hunk, side)
      for line = first, look and first + count - 1 or first - 1 do
        local how = { sign_text = look[1], sign_hl_group = look[2] }
        how.virt_text = line == first and { { ' ' .. decided, look[2] } } or nil
        pcall(vim.api.nvim_buf_set_extmark, buffer, space, line - 1, 0, how)
      end
    end
  end
end

local function contents(job, file, sides, done)
  local found = {}
  for index, side in ipairs(sides) do
    local params = { jobId = job.id, side = side, path = file.path, pathBytes = file.pathBytes }
    client.request(request.content, params, function(content)
      found[index] = content
      if vim.tbl_count(found) == #sides then done(found) end
    end)
  end
end

--- Puts contents into windows, side by side in diff mode; gives the buffers.
local function beside(job, file, sides, found, windows)
  local buffers = {}
  for index, side in ipairs(sides) do
    local content, window = found[index], windows[index]
    local lines = content.binary and { ('(not text: %d bytes)'):format(content.size) } or ui.lines(content.text or '')
    buffers[index] = ui.scratch(('pactify://%s/%s/%s'):format(job.id, side, file.pathBytes or file.path), lines)
    vim.api.nvim_win_set_buf(window, buffers[index])
    local conflicts = content.conflicts or 0
    local title = titles[side] .. (conflicts > 0 and (' · %d conflicts: never written'):format(conflicts) or '')
    vim.wo[window].winbar = (' %s · %s'):format(title, file.path:gsub('%%', '%%%%'))
    vim.api.nvim_win_call(window, function() vim.cmd('diffthis | setlocal signcolumn=yes fillchars=eob:\\ ') end)
    local filetype = vim.filetype.match({ filename = file.path, contents = lines })
    local is_coloured = filetype and content.size <= most_coloured
    if is_coloured then pcall(vim.api.nvim_set_option_value, 'filetype', filetype, { buf = buffers[index] }) end
  end
  return buffers
end

local map_keys ---@type fun(view: pactify.View, buffer: integer)

--- Shows one file, or what merging it into the checkout gives.
local function show(view, file, merging)
  view.turn, view.merging = view.turn + 1, merging
  local turn, sides = view.turn, merging and { 'current', 'merged' } or { 'base', 'result' }
  local params = { jobId = view.job.id, path = file.path, pathBytes = file.pathBytes, format = 'hunks' }
  client.request(request.diff_preview, params, function(answer)
    contents(view.job, file, sides, function(found)
      if turn ~= view.turn or not is_open(view) then return end
      local whole = answer.files[1] or file
      view.file, view.hunks = file, whole.hunks or {}
      marks_of(view, file).groups = whole.groups
      vim.api.nvim_win_call(view.window, function()
        vim.cmd('diffoff!')
        for index = 1, 2 do
          if not vim.api.nvim_win_is_valid(view.sides[index] or -1) then
            vim.cmd('vertical botright split | setlocal nowinfixwidth nocursorline')
            view.sides[index] = vim.api.nvim_get_current_win()
          end
        end
      end)
      local shown = beside(view.job, file, sides, found, view.sides)
      vim.iter(shown):each(function(buffer) map_keys(view, buffer) end)
      vim.api.nvim_win_set_width(view.window, math.min(40, math.floor(vim.o.columns / 4)))
      vim.cmd.wincmd('=')
      vim.api.nvim_win_call(view.sides[2], function() vim.cmd('silent! normal! gg]c') end)
      sign(view)
    end)
  end)
end

--- Accepts or rejects: in the list a file, in a side the change under the cursor. Doing it again takes it back.
---@param mark pactify.Mark
---@param whole? boolean The whole file, also in a side.
function M.mark(mark, whole)
  local view = here()
  local file = view and file_here(view)
  if not view or not file then
    return ui.say('accept and reject are for the preview of a job; :Pactify preview opens it')
  elseif file.refused then
    return ui.complain(('%s is never applied: %s'):format(file.path, file.refused))
  end
  local marks = marks_of(view, file)
  if whole or vim.api.nvim_get_current_win() == view.window or file.kind ~= 'modified' then
    marks.whole, marks.parts = marks.whole ~= mark and mark or nil, {}
  else
    local hunk = hunk_here(view)
    if not hunk or not hunk.id then
      return ui.say(hunk and 'this file can only be taken as a whole: A or X' or 'no change here; ]c goes to the next')
    end
    -- What was decided about the whole file holds for its other parts.
    vim.iter(marks.whole and marks.groups or {}):each(function(group) marks.parts[group.id] = marks.whole end)
    marks.whole = nil
    marks.parts[hunk.id] = marks.parts[hunk.id] ~= mark and mark or nil
  end
  list(view)
  sign(view)
end

--- What was decided, as `select` of an apply.
---@param view pactify.View
---@param only_accepted boolean Else everything that was not rejected.
---@return pactify.Selected[] select, integer parts How many parts of files are among it.
function M.selection(view, only_accepted)
  local select, parts = {}, 0
  local function is_chosen(mark) return mark == 'accepted' or not only_accepted and mark ~= 'rejected' end
  for _, file in ipairs(view.preview.files) do
    local marks, chosen = marks_of(view, file), M.name(file)
    local is_any = is_chosen(marks.whole)
    if next(marks.parts) then
      local function open(group) return not group.accepted and is_chosen(marks.parts[group.id]) end
      chosen.groups = vim.tbl_map(function(group) return group.id end, vim.tbl_filter(open, marks.groups or {}))
      parts, is_any = parts + #chosen.groups, #chosen.groups > 0
    end
    table.insert(select, is_any and not file.refused and chosen or nil)
  end
  return select, parts
end

--- `:Pactify comment`: a message to the job about these lines.
---@param first integer
---@param last integer
function M.comment(first, last)
  local place, fenced = require('pactify.compose').quoted(0, first, last)
  local function write(job)
    local lines = vim.list_extend({ '', '', ('This is about %s:'):format(place), '' }, fenced)
    require('pactify.compose').message(job, lines)
  end
  local view, jobs, window = here(), require('pactify.jobs'), vim.api.nvim_get_current_win()
  if not view then return jobs.act({ name = 'comment', fits = jobs.is_over, run = write }, '', '') end
  if window ~= view.window and view.file then
    local side = window == view.sides[1] and 'as it was before' or 'as you left it'
    local lines = first == last and 'line ' .. first or ('lines %d–%d'):format(first, last)
    place = ('%s, %s, %s'):format(view.file.path, lines, side)
  end
  write(view.job)
end

--- Asks for all pages, after those of `whole`. What an apply would do can't be told while another works on the checkout;
--- what the job did, can.
local function ask(job, done, checkout, whole)
  local params = { jobId = job.id, cursor = whole and whole.next, limit = page_size, checkout = checkout }
  client.request(request.diff_preview, params, function(page)
    if whole and whole.changeSet ~= page.changeSet then return ask(job, done, checkout) end
    if whole then page.files = vim.list_extend(whole.files, page.files) end
    if page.next then return ask(job, done, checkout, page) end
    done(page)
  end, function()
    if checkout then ask(job, done, false) end
    return checkout
  end)
end

--- Looks again, after an apply or for a new result. Marks stay, unless the result is another one.
function M.refresh(job_id, asked)
  local view = M.views[job_id]
  M.views[job_id] = view and is_open(view) and view or nil
  if not M.views[job_id] then return end
  ask(view.job, function(preview)
    if not is_open(view) then return end
    local same = preview.changeSet == view.preview.changeSet
    view.preview, view.marks, view.unseen = preview, same and view.marks or {}, not asked and (view.unseen or not same)
    list(view)
    for _, file in ipairs(view.file and preview.files or {}) do
      if key(file) == key(view.file) then return show(view, file, view.merging) end
    end
  end, true)
end

--- What was accepted is in the checkout now; what was rejected stays so.
function M.applied(job_id)
  local view = M.views[job_id]
  if not view then return end
  view.merging = false
  for _, marks in pairs(view.marks) do
    marks.whole = marks.whole == 'rejected' and marks.whole or nil
    for part, mark in pairs(marks.parts) do
      marks.parts[part] = mark == 'rejected' and mark or nil
    end
  end
  M.refresh(job_id)
end

--- Shows the file here, or one so many further.
local function go(view, by, merging)
  local file = file_here(view)
  local at = file and vim.fn.index(vim.tbl_map(key, view.preview.files), key(file)) + 1 + by or 0
  if not view.preview.files[at] then return end
  vim.api.nvim_win_set_cursor(view.window, { view.first + at, 0 })
  show(view, view.preview.files[at], merging)
end

map_keys = function(view, buffer)
  local function map(lhs, what, act)
    vim.keymap.set('n', lhs, act, { buffer = buffer, nowait = true, desc = 'pactify: ' .. what })
  end
  map('a', 'accept', function() M.mark('accepted') end)
  map('x', 'reject', function() M.mark('rejected') end)
  map('A', 'accept the file', function() M.mark('accepted', true) end)
  map('X', 'reject the file', function() M.mark('rejected', true) end)
  map(']f', 'next file', function() go(view, 1, false) end)
  map('[f', 'previous file', function() go(view, -1, false) end)
  map('m', 'its merge, or the change', function() go(view, 0, not view.merging) end)
  map('R', 'look again', function() M.refresh(view.job.id) end)
  map('g?', 'help', function() ui.help('pactify-preview') end)
  map('q', 'close', function()
    if not pcall(vim.cmd.tabclose) then vim.cmd('silent! only | enew') end
  end)
  vim.keymap.set({ 'n', 'x' }, 'C', ':Pactify comment<CR>', { buffer = buffer, nowait = true, silent = true })
end

--- Opens the preview of a job's changes.
---@param job pactify.JobSummary
---@param done? fun()
function M.open(job, done)
  local old = M.views[job.id]
  if old and is_open(old) then
    vim.api.nvim_set_current_win(old.window)
    return M.refresh(job.id, true)
  end
  local root = client.root()
  ask(job, function(preview)
    vim.cmd.tabnew()
    vim.bo.bufhidden = 'wipe'
    local view = { job = job, preview = preview, sides = {}, hunks = {}, merging = false, turn = 0, first = 0 }
    view.marks = old and old.preview.changeSet == preview.changeSet and old.marks or {}
    view.list, view.window = ui.scratch('pactify://' .. job.id, {}), vim.api.nvim_get_current_win()
    M.views[job.id], vim.b[view.list].pactify_root = view, root
    vim.api.nvim_win_set_buf(0, view.list)
    vim.bo[view.list].filetype = 'pactify'
    vim.cmd('setlocal winfixwidth nowrap cursorline nonumber norelativenumber fillchars=eob:\\ ')
    vim.wo.winbar = ' a accept  x reject  g? all keys'
    local function paint(group, what) vim.cmd.syntax(('match %s /^%s/'):format(group, what)) end
    vim.iter(pairs(looks)):each(function(_, look) paint(look[2], look[1] .. [[\ze [AMDmT?] ]]) end)
    local letters = { Added = 'A', Removed = 'D', Changed = '[MmT]' }
    vim.iter(letters):each(function(group, letter) paint(group, ([[. \zs%s\ze ]]):format(letter)) end)
    paint('DiagnosticWarn', [[. [AMDmT?] .*\zs  (.*)$]])
    list(view)
    map_keys(view, view.list)
    vim.keymap.set('n', '<CR>', function() go(view, 0, false) end, { buffer = view.list })
    vim.api.nvim_win_set_cursor(view.window, { view.first + (preview.files[1] and 1 or 0), 0 })
    go(view, 0, false)
    if done then done() end
  end, true)
end

--- Shows in a tab page of its own what each merge would change in the checkout.
function M.merges(job, merges, done)
  local windows = {}
  local function close()
    vim.iter(windows):each(function(window) pcall(vim.api.nvim_win_close, window, true) end)
  end
  local function show_from(index)
    local merge, sides = merges[index], { 'current', 'merged' }
    if not merge then return done(close) end
    contents(job, merge, sides, function(found)
      vim.cmd('tabnew | setlocal bufhidden=wipe | rightbelow vsplit')
      local both = vim.api.nvim_tabpage_list_wins(0)
      vim.list_extend(windows, both)
      beside(job, merge, sides, found, both)
      show_from(index + 1)
    end)
  end
  show_from(1)
end

return M
