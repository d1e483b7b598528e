// Tests of the launcher with real packages in which a shell script replaces the program: `node --test .ci/npm/launcher.test.mjs`.
// They test both modes: replacing the launcher's process (if this version of Node.js supports it), and running a child process.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const PLATFORM = `${process.platform}-${process.arch}`;
const NAME = "acp-skills-proxy";
const canReplace = typeof process.execve === "function";

let root;

/** Installs the packages of `pack.mjs` with the shell script `script` as the program. Returns the path of the launcher. */
function install(script) {
  const home = mkdtempSync(join(root, "home-"));
  for (const file of readdirSync(join(root, "packed"))) {
    const name = file.startsWith(`${NAME}-${process.platform}`) ? `@acp-skills/proxy-${PLATFORM}` : NAME;
    const directory = join(home, "node_modules", name);
    mkdirSync(directory, { recursive: true });
    execFileSync("tar", ["xzf", join(root, "packed", file), "--strip-components=1", "-C", directory]);
  }
  const launcher = join(home, "node_modules", NAME, "launcher.cjs");
  writeFileSync(programOf(launcher), `#!/bin/sh\n${script}\n`);
  return launcher;
}

const programOf = (launcher) => join(launcher, "../../@acp-skills", `proxy-${PLATFORM}`, "bin", NAME);

/** Starts a launcher in one of the two modes, after running the code in `preload`. */
function start(launcher, { args = [], isChild = false, preload = "" } = {}) {
  const file = join(dirname(launcher), "preload.cjs");
  writeFileSync(file, `${isChild ? "delete process.execve;" : ""}${preload}`);
  const child = spawn(process.execPath, ["--require", file, launcher, ...args], { timeout: 60_000 });
  return { child, stdout: text(child.stdout), stderr: text(child.stderr), ended: once(child, "exit") };
}

async function run(launcher, options = {}) {
  const { child, stdout, stderr, ended } = start(launcher, options);
  child.stdin.end(options.input ?? "");
  const [code, signal] = await ended;
  return { code, signal, stdout: await stdout, stderr: await stderr };
}

/** Waits until the child has printed `word`. */
async function waitForOutput(child, word) {
  let output = "";
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    output += chunk;
    if (output.includes(word)) {
      return;
    }
  }
  assert.fail(`the program did not print ${word}, but ${output}`);
}

before(() => {
  root = mkdtempSync(join(tmpdir(), `${NAME}-launcher-`));
  writeFileSync(join(root, "program"), "");
  const program = `${PLATFORM}=${join(root, "program")}`;
  execFileSync(process.execPath, [join(HERE, "pack.mjs"), join(root, "packed"), program]);
});

after(() => rmSync(root, { recursive: true }));

// Windows cannot run a shell script as a program, and has no signals.
const skip = process.platform === "win32" && "the program is a shell script";

for (const isChild of canReplace ? [false, true] : [true]) {
  describe(isChild ? "as a child process" : "in place of the launcher", { skip }, () => {
    test("input, output, arguments and exit code are those of the program", async () => {
      const launcher = install(`printf '%s|' "$@"; cat; echo aside >&2; exit 42`);
      const args = ["try", "two words", 'a "quote"', "", "--", "$HOME"];
      const result = await run(launcher, { isChild, args, input: '{"jsonrpc":"2.0"}\n' });
      const stdout = 'try|two words|a "quote"||--|$HOME|{"jsonrpc":"2.0"}\n';
      assert.deepEqual(result, { code: 42, signal: null, stdout, stderr: "aside\n" });
    });

    test("a signal that kills the program also kills the launcher", async () => {
      const result = await run(install("kill -KILL $$"), { isChild });
      assert.deepEqual([result.code, result.signal, result.stderr], [null, "SIGKILL", ""]);
      const gentle = await run(install("kill -TERM $$"), { isChild });
      assert.deepEqual([gentle.code, gentle.signal, gentle.stderr], [null, "SIGTERM", ""]);
    });

    for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) {
      test(`${signal} is forwarded to the program`, async () => {
        const name = signal.slice(3);
        // Use `wait`, because a signal interrupts it. A foreground command would delay the trap.
        const launcher = install(`sleep 60 & trap 'kill $!; exit 9' ${name}; echo ready; wait; exit 1`);
        const child = spawnReady(launcher, isChild);
        await waitForOutput(child, "ready");
        child.kill(signal);
        const [code] = await once(child, "exit");
        assert.equal(code, 9);
      });
    }

    test("the program keeps its stdin if the launcher is killed", async () => {
      const mark = join(root, `ended-${isChild}`);
      const launcher = install(`echo ready; cat; echo end of input > '${mark}'`);
      const child = spawnReady(launcher, isChild);
      await waitForOutput(child, "ready");
      child.kill("SIGKILL");
      await once(child, "exit");
      if (isChild) {
        // The program is still running with its own end of the pipe, so it sees the end of its input.
        child.stdin.end();
        await once(child.stdout.resume(), "end");
        assert.equal(readFileSync(mark, "utf8"), "end of input\n");
      } else {
        // The program has replaced the launcher, so the program itself was killed.
        child.stdin.destroy();
        assert.throws(() => readFileSync(mark), { code: "ENOENT" });
      }
    });
  });
}

function spawnReady(launcher, isChild) {
  const file = join(dirname(launcher), "preload.cjs");
  writeFileSync(file, isChild ? "delete process.execve;" : "");
  return spawn(process.execPath, ["--require", file, launcher], { stdio: ["pipe", "pipe", "inherit"], timeout: 60_000 });
}

describe("missing parts", { skip }, () => {
  test("the package for this platform is not installed", async () => {
    const launcher = install("exit 0");
    rmSync(join(launcher, "../../@acp-skills"), { recursive: true });
    const { code, stdout, stderr } = await run(launcher);
    assert.deepEqual([code, stdout], [125, ""]);
    assert.match(stderr, new RegExp(`^error: the package @acp-skills/proxy-${PLATFORM}, which has the program`));
    assert.match(stderr, /\nhint: .*npm install --include=optional/);
  });

  test("there is no package for this platform", async () => {
    const preload = 'Object.defineProperty(process, "arch", { value: "mips" });';
    const { code, stderr } = await run(install("exit 0"), { preload });
    assert.equal(code, 125);
    assert.match(stderr, /^error: there is no package of acp-skills-proxy for \w+-mips\nhint: .*cargo install/);
  });

  for (const isChild of [false, true]) {
    test(`the program is not executable (${isChild ? "child process" : "in place"})`, async () => {
      const launcher = install("exit 0");
      chmodSync(programOf(launcher), 0o644);
      const { code, stderr } = await run(launcher, { isChild });
      assert.equal(code, 126);
      assert.match(stderr, /^error: cannot start .*EACCES.*\nhint: install the package again\n$/);
    });
  }
});
