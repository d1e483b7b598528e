;;; -*- lexical-binding: t -*-
;; Configures Emacs with only agent-shell. $PLUGINS is the directory of packages, $AGENT the agent's command line as JSON.
(dolist (package '("shell-maker" "acp.el" "agent-shell"))
  (add-to-list 'load-path (expand-file-name package (getenv "PLUGINS"))))
(setq make-backup-files nil
      auto-save-default nil
      inhibit-startup-screen t
      ring-bell-function #'ignore
      native-comp-jit-compilation nil
      ;; Hide everything that moves or shows the time.
      agent-shell-show-busy-indicator nil
      agent-shell-show-welcome-message nil
      agent-shell-header-style nil
      agent-shell-transcript-file-path-function nil
      ;; Open a session at the start, because commands are completed only in a session.
      agent-shell-session-strategy 'new)
(menu-bar-mode -1)
;; The number counts lines that are not shown.
(line-number-mode -1)
(setq frame-background-mode 'dark)
(frame-set-background-mode (selected-frame))

(require 'agent-shell)
(setq agent-shell-anthropic-claude-acp-command (json-parse-string (getenv "AGENT") :array-type 'list))
(agent-shell-anthropic-start-claude-code)
(delete-other-windows)
