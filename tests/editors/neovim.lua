-- Neovim with CodeCompanion and nothing else: the plugins are in $PLUGINS, the agent's command line is in $AGENT, as JSON.
for _, plugin in ipairs({ "plenary.nvim", "codecompanion.nvim" }) do
  vim.opt.runtimepath:append(vim.env.PLUGINS .. "/" .. plugin)
end
vim.o.swapfile = false
vim.o.shadafile = "NONE"
-- Messages of several lines, such as that a parser is not installed, ask for no key.
vim.o.messagesopt = "wait:0,history:500"

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

-- Whoever looks at the screen sees when the commands of the session are there.
vim.api.nvim_create_autocmd("User", {
  pattern = "CodeCompanionACPCommandsUpdate",
  callback = function(event)
    vim.notify(#event.data.commands .. " commands")
  end,
})
