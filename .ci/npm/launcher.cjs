#!/usr/bin/env node
// Starts the program that came with the package of this platform, and stays out of its way: the program has our stdin,
// stdout and stderr themselves, so no byte passes through here. Where node can, it becomes the program; elsewhere it waits
// for it, passes signals on, and ends as the program ends.
"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants } = require("node:fs");
const { isatty } = require("node:tty");

const NAME = "acp-skills-proxy";
// As the program itself: it failed, it is not executable.
const FAILED = 125;
const NOT_EXECUTABLE = 126;

function fail(code, message, hint) {
  process.stderr.write(`error: ${message}\nhint: ${hint}\n`);
  process.exit(code);
}

/** The path of the program. */
function installed() {
  const platform = `${process.platform}-${process.arch}`;
  const wanted = `@acp-skills/proxy-${platform}`;
  const { optionalDependencies } = require("./package.json");
  if (!(wanted in optionalDependencies)) {
    fail(
      FAILED,
      `there is no package of ${NAME} for ${platform}`,
      `with Rust it can be built: cargo install ${NAME} --locked`,
    );
  }
  const file = process.platform === "win32" ? `${NAME}.exe` : NAME;
  try {
    return require.resolve(`${wanted}/bin/${file}`);
  } catch {
    return fail(
      FAILED,
      `the package ${wanted}, which has the program for this platform, is not installed`,
      "install again with optional dependencies (`npm install --include=optional`), on the platform that it runs on: " +
        "a node_modules that was copied from another one, or a lock file that was made without them, has the wrong package",
    );
  }
}

/** Becomes the program, where that can be (node 22.15 or newer, not on Windows). */
function become(program, args) {
  if (process.platform === "win32" || typeof process.execve !== "function") {
    return;
  }
  // Some versions warn that it is experimental; stderr is the program's.
  process.removeAllListeners("warning");
  process.execve(program, [program, ...args], process.env);
}

/** Runs the program beside us. */
function run(program, args) {
  let child;
  const listeners = new Map();
  // Before the program is there: a signal in between would end us alone. Listeners run when this function is through.
  const isWindows = process.platform === "win32";
  for (const signal of isWindows ? ["SIGINT"] : ["SIGHUP", "SIGINT", "SIGTERM"]) {
    const listener = () => {
      // A terminal sends Ctrl-C to the program as well, and two of them mean something else to many agents than one. So does
      // a console of Windows, where nothing else can be passed on.
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
    // What killed the program kills us, so that whoever started us sees the same.
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
become(program, args);
run(program, args);
