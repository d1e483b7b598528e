-- Configures Neovim with only avante and nvim-cmp. $PLUGINS is the directory of plugins, $AGENT the agent's command line as JSON.
for _, plugin in ipairs({ "plenary.nvim", "nui.nvim", "nvim-cmp", "avante.nvim" }) do
  vim.opt.runtimepath:append(vim.env.PLUGINS .. "/" .. plugin)
end
vim.o.swapfile = false
vim.o.shadafile = "NONE"
vim.o.laststatus = 3

-- avante renders its own prompts with a compiled library. An ACP agent doesn't receive them, so the library is not needed.
package.preload["avante_templates"] = function()
  return { initialize = function() end, render = function() return "" end }
end

local command = vim.json.decode(vim.env.AGENT)
require("cmp").setup({
  mapping = {
    ["<C-n>"] = function() require("cmp").complete() end,
    ["<C-e>"] = require("cmp").mapping.close(),
  },
})
require("avante").setup({
  provider = "scripted",
  acp_providers = {
    scripted = { command = command[1], args = vim.list_slice(command, 2), env = {} },
  },
  behaviour = { auto_suggestions = false, auto_set_highlight_group = true },
  hints = { enabled = false },
  windows = { width = 60, spinner = { editing = { "" }, generating = { "" }, thinking = { "" } } },
})

-- A key that moves to the input from anywhere.
vim.keymap.set({ "n", "i" }, "<F2>", function()
  require("avante").get():focus_input()
  vim.cmd.startinsert()
end)
