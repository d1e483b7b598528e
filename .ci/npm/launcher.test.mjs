// What the launcher promises, with packages as they are packed and shell scripts in place of the program; run by
// `node --test .ci/npm/launcher.test.mjs`. Both ways are tried: becoming the program (where this node can), and running it beside the launcher.
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
const canBecome = typeof process.execve === "function";

let root;

/** Installs what `pack.mjs` packs, with the shell script `script` as the program; returns the launcher. */
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

/** Starts a launcher, by one of the two ways, after the statements of `preload`. */
function start(launcher, { args = [], isBeside = false, preload = "" } = {}) {
  const file = join(dirname(launcher), "preload.cjs");
  writeFileSync(file, `${isBeside ? "delete process.execve;" : ""}${preload}`);
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
async function said(child, word) {
  let heard = "";
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    heard += chunk;
    if (heard.includes(word)) {
      return;
    }
  }
  assert.fail(`${word} was never said, but ${heard}`);
}

before(() => {
  root = mkdtempSync(join(tmpdir(), `${NAME}-launcher-`));
  writeFileSync(join(root, "program"), "");
  const program = `${PLATFORM}=${join(root, "program")}`;
  execFileSync(process.execPath, [join(HERE, "pack.mjs"), join(root, "packed"), program]);
});

after(() => rmSync(root, { recursive: true }));

// A script is no program on Windows, and there are no signals.
const skip = process.platform === "win32" && "shell scripts stand in for the program";

for (const isBeside of canBecome ? [false, true] : [true]) {
  describe(isBeside ? "beside the launcher" : "in place of the launcher", { skip }, () => {
    test("what goes in and comes out, arguments and exit code are the program's alone", async () => {
      const launcher = install(`printf '%s|' "$@"; cat; echo aside >&2; exit 42`);
      const args = ["try", "two words", 'a "quote"', "", "--", "$HOME"];
      const result = await run(launcher, { isBeside, args, input: '{"jsonrpc":"2.0"}\n' });
      const stdout = 'try|two words|a "quote"||--|$HOME|{"jsonrpc":"2.0"}\n';
      assert.deepEqual(result, { code: 42, signal: null, stdout, stderr: "aside\n" });
    });

    test("a program that is killed looks killed", async () => {
      const result = await run(install("kill -KILL $$"), { isBeside });
      assert.deepEqual([result.code, result.signal, result.stderr], [null, "SIGKILL", ""]);
      const gentle = await run(install("kill -TERM $$"), { isBeside });
      assert.deepEqual([gentle.code, gentle.signal, gentle.stderr], [null, "SIGTERM", ""]);
    });

    for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) {
      test(`${signal} reaches the program, which decides what follows`, async () => {
        const name = signal.slice(3);
        // `wait` ends at a signal; a foreground command would hold the trap up.
        const launcher = install(`sleep 60 & trap 'kill $!; exit 9' ${name}; echo ready; wait; exit 1`);
        const child = spawnReady(launcher, isBeside);
        await said(child, "ready");
        child.kill(signal);
        const [code] = await once(child, "exit");
        assert.equal(code, 9);
      });
    }

    test("when the launcher is killed, the end of its input is the program's", async () => {
      const mark = join(root, `ended-${isBeside}`);
      const launcher = install(`echo ready; cat; echo end of input > '${mark}'`);
      const child = spawnReady(launcher, isBeside);
      await said(child, "ready");
      child.kill("SIGKILL");
      await once(child, "exit");
      if (isBeside) {
        // The program is alive and has its own end of the pipe: what is written still arrives.
        child.stdin.end();
        await once(child.stdout.resume(), "end");
        assert.equal(readFileSync(mark, "utf8"), "end of input\n");
      } else {
        // There was no other process: the program is what was killed.
        child.stdin.destroy();
        assert.throws(() => readFileSync(mark), { code: "ENOENT" });
      }
    });
  });
}

function spawnReady(launcher, isBeside) {
  const file = join(dirname(launcher), "preload.cjs");
  writeFileSync(file, isBeside ? "delete process.execve;" : "");
  return spawn(process.execPath, ["--require", file, launcher], { stdio: ["pipe", "pipe", "inherit"], timeout: 60_000 });
}

describe("what is missing", { skip }, () => {
  test("the platform's package", async () => {
    const launcher = install("exit 0");
    rmSync(join(launcher, "../../@acp-skills"), { recursive: true });
    const { code, stdout, stderr } = await run(launcher);
    assert.deepEqual([code, stdout], [125, ""]);
    assert.match(stderr, new RegExp(`^error: the package @acp-skills/proxy-${PLATFORM}, which has the program`));
    assert.match(stderr, /\nhint: .*npm install --include=optional/);
  });

  test("a package for the platform at all", async () => {
    const preload = 'Object.defineProperty(process, "arch", { value: "mips" });';
    const { code, stderr } = await run(install("exit 0"), { preload });
    assert.equal(code, 125);
    assert.match(stderr, /^error: there is no package of acp-skills-proxy for \w+-mips\nhint: .*cargo install/);
  });

  for (const isBeside of [false, true]) {
    test(`the right to start it (${isBeside ? "beside" : "in place"})`, async () => {
      const launcher = install("exit 0");
      chmodSync(programOf(launcher), 0o644);
      const { code, stderr } = await run(launcher, { isBeside });
      assert.equal(code, 126);
      assert.match(stderr, /^error: cannot start .*EACCES.*\nhint: install the package again\n$/);
    });
  }
});
