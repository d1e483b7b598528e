;;; -*- lexical-binding: t -*-
;; Emacs with agent-shell and nothing else: the packages are in $PLUGINS, the agent's command line is in $AGENT, as JSON.
(dolist (package '("shell-maker" "acp.el" "agent-shell"))
  (add-to-list 'load-path (expand-file-name package (getenv "PLUGINS"))))
(setq make-backup-files nil
      auto-save-default nil
      inhibit-startup-screen t
      ring-bell-function #'ignore
      native-comp-jit-compilation nil
      ;; What stands there moves, or tells the time.
      agent-shell-show-busy-indicator nil
      agent-shell-show-welcome-message nil
      agent-shell-header-style nil
      agent-shell-transcript-file-path-function nil
      ;; Commands are completed once the session is there.
      agent-shell-session-strategy 'new)
(menu-bar-mode -1)
(setq frame-background-mode 'dark)
(frame-set-background-mode (selected-frame))

(require 'agent-shell)
(setq agent-shell-anthropic-claude-acp-command (json-parse-string (getenv "AGENT") :array-type 'list))
(agent-shell-anthropic-start-claude-code)
(delete-other-windows)
