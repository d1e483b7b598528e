-- Neovim with CodeCompanion and nothing else: the plugins are in $PLUGINS, the agent's command line is in $AGENT, as JSON.
for _, plugin in ipairs({ "plenary.nvim", "codecompanion.nvim" }) do
  vim.opt.runtimepath:append(vim.env.PLUGINS .. "/" .. plugin)
end
vim.o.swapfile = false
vim.o.shadafile = "NONE"

require("codecompanion").setup({
  interactions = { chat = { adapter = "scripted" } },
  adapters = {
    acp = {
      scripted = function()
        return require("codecompanion.adapters").extend("gemini_cli", {
          name = "scripted",
          formatted_name = "Scripted",
          commands = { default = vim.json.decode(vim.env.AGENT) },
          env = {},
        })
      end,
    },
  },
})

-- Tells how many commands the session has.
vim.api.nvim_create_autocmd("User", {
  pattern = "CodeCompanionACPCommandsUpdate",
  callback = function(event)
    vim.fn.writefile({ #event.data.commands .. " commands" }, vim.env.HOME .. "/.commands")
  end,
})
