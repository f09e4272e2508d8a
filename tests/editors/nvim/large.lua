-- A result of ten thousand files: it opens, is marked and moved through, while the editor goes on answering as it does
-- with one of two hundred.

local kit = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), 'kit.lua'))
local check, now = kit.check, kit.now

--- A pause that nobody notices, in milliseconds; and so much longer than with a small result one with a large may be.
local unnoticed, most_times = 50, 10

--- The longest that the editor answered nothing while something went on, in milliseconds.
local function pause(act)
  local longest, last, timer = 0.0, vim.uv.hrtime(), assert(vim.uv.new_timer())
  local function beat()
    local at = vim.uv.hrtime()
    longest, last = math.max(longest, (at - last) / 1e6), at
  end
  timer:start(0, 5, beat)
  act()
  beat()
  timer:close()
  return longest
end

--- Previews a job of so many files, rejects the last of them, and gives the longer of both pauses. What runs beside it
--- only makes a pause longer: one that is longer than `most` is measured again, ten times at most.
local function look(title, count, most)
  kit.finish(title, {
    { run = ('mkdir many; for n in $(seq %d); do echo $n > many/$n.txt; done'):format(count) },
    { say = 'Done.' },
  })
  local opening, marking = math.huge, math.huge
  for _ = 1, 10 do
    kit.answers = { title }
    opening = math.min(
      opening,
      pause(function()
        vim.cmd('Pactify preview')
        check('the preview opens', 120, function() return #vim.api.nvim_tabpage_list_wins(0) == 3 end)
      end)
    )
    local list = vim.api.nvim_tabpage_list_wins(0)[1]
    now('with every file', vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(list)) > count)
    vim.api.nvim_set_current_win(list)
    vim.cmd('normal! G')
    marking = math.min(
      marking,
      pause(function()
        kit.press('x')
        check(
          'its last file is rejected',
          10,
          function() return vim.api.nvim_get_current_line():find('✗', 1, true) end
        )
      end)
    )
    -- The mark outlives the tab page.
    kit.press('x')
    vim.cmd('tabclose')
    if math.max(opening, marking) < most then break end
  end
  io.stdout:write(('# %d files: %.0f ms to open, %.0f ms for a mark, at most\n'):format(count, opening, marking))
  return math.max(opening, marking)
end

kit.start('README.md')
local small = look('Write two hundred files', 200, math.huge)
local most = most_times * math.max(small, unnoticed)
now('nothing freezes', look('Write ten thousand files', 10000, most) < most)
kit.leave()
