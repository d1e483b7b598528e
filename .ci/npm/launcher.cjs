#!/usr/bin/env node
// Starts the program from the package for this platform. The program inherits stdin, stdout and stderr, so no message passes
// through Node.js. If Node.js supports it, the program replaces this process. Otherwise, this process waits for the program,
// forwards signals, and exits with its exit code.
"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants } = require("node:fs");
const { isatty } = require("node:tty");

const NAME = "acp-skills-proxy";
// The same exit codes as those of the program: the proxy failed, and a file is not executable.
const FAILED = 125;
const NOT_EXECUTABLE = 126;

function fail(code, message, hint) {
  process.stderr.write(`error: ${message}\nhint: ${hint}\n`);
  process.exit(code);
}

/** Returns the path of the program. */
function installed() {
  const platform = `${process.platform}-${process.arch}`;
  const wanted = `@acp-skills/proxy-${platform}`;
  const { optionalDependencies } = require("./package.json");
  if (!(wanted in optionalDependencies)) {
    fail(
      FAILED,
      `there is no package of ${NAME} for ${platform}`,
      `to build from source, run: cargo install ${NAME} --locked`,
    );
  }
  const file = process.platform === "win32" ? `${NAME}.exe` : NAME;
  try {
    return require.resolve(`${wanted}/bin/${file}`);
  } catch {
    return fail(
      FAILED,
      `the package ${wanted}, which has the program for this platform, is not installed`,
      "install again on this platform with optional dependencies (`npm install --include=optional`); a node_modules from " +
        "another platform, or a lock file without optional dependencies, does not have the right package",
    );
  }
}

/** Replaces this process with the program. Returns if that isn't supported: on Windows, and before Node.js 22.15. */
function replaceProcess(program, args) {
  if (process.platform === "win32" || typeof process.execve !== "function") {
    return;
  }
  // Some versions print a warning that the function is experimental, but stderr belongs to the program.
  process.removeAllListeners("warning");
  process.execve(program, [program, ...args], process.env);
}

/** Runs the program as a child process. */
function run(program, args) {
  let child;
  const listeners = new Map();
  // Add listeners before the program starts, because a signal in between would end only this process. Listeners run after this
  // function has returned.
  const isWindows = process.platform === "win32";
  for (const signal of isWindows ? ["SIGINT"] : ["SIGHUP", "SIGINT", "SIGTERM"]) {
    const listener = () => {
      // A terminal sends Ctrl-C to the program as well, and many agents treat a second one differently, so don't forward it. A
      // Windows console does the same, and Windows has no other signals to forward.
      if (!isWindows && (signal !== "SIGINT" || !isatty(0))) {
        child.kill(signal);
      }
    };
    listeners.set(signal, listener);
    process.on(signal, listener);
  }
  child = spawn(program, args, { stdio: "inherit", windowsHide: true });
  child.on("error", (error) => {
    fail(NOT_EXECUTABLE, `cannot start ${program}: ${error.message}`, "install the package again");
  });
  child.on("exit", (code, signal) => {
    if (signal === null) {
      process.exit(code);
    }
    for (const [name, listener] of listeners) {
      process.off(name, listener);
    }
    // End this process with the same signal, so that the parent process sees how the program ended.
    process.kill(process.pid, signal);
  });
}

const program = installed();
try {
  accessSync(program, constants.X_OK);
} catch (error) {
  fail(NOT_EXECUTABLE, `cannot start ${program}: ${error.message}`, "install the package again");
}
const args = process.argv.slice(2);
replaceProcess(program, args);
run(program, args);
