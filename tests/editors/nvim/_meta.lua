---@meta _
-- What Neovim's own annotations leave out: lua-language-server brings those of luv, and takes any argument for calls of
-- tables. Only what the client and its suites use.

---@class uv
---@field fs_close fun(file: integer): boolean?
---@field fs_open fun(path: string, flags: string, mode: integer): integer?
---@field fs_realpath fun(path: string): string?
---@field fs_rename fun(path: string, new_path: string): boolean?
---@field fs_stat fun(path: string): table?
---@field fs_unlink fun(path: string): boolean?
---@field fs_write fun(file: integer, data: string): integer?
---@field hrtime fun(): integer
---@field kill fun(pid: integer, signal: string)
---@field new_timer fun(): uv.uv_timer_t?
---@field os_getpid fun(): integer

---@class uv.uv_timer_t
---@field close fun(self: uv.uv_timer_t)
---@field start fun(self: uv.uv_timer_t, timeout: integer, period: integer, callback: fun())
---@field stop fun(self: uv.uv_timer_t)

---@class IterMod
---@overload fun(source: any, ...: any): Iter

---@type table<string, vim.lsp.Config>
vim.lsp.config = nil
