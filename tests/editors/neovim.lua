-- Configures Neovim with only CodeCompanion. $PLUGINS is the directory of plugins, $AGENT the agent's command line as JSON.
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

-- Write the number of the session's commands to a file, for the tests.
vim.api.nvim_create_autocmd("User", {
  pattern = "CodeCompanionACPCommandsUpdate",
  callback = function(event)
    vim.fn.writefile({ #event.data.commands .. " commands" }, vim.env.HOME .. "/.commands")
  end,
})
