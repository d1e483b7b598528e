// Tests that all packages agree with each other, with Cargo.toml and with platforms.json: `node --test .ci/packaging.test.mjs`.
// The tests read files and build no program.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const CI = dirname(fileURLToPath(import.meta.url));
const read = (path) => readFileSync(join(CI, "..", path), "utf8");
const platforms = JSON.parse(read(".ci/platforms.json"));
const manifest = read("Cargo.toml");
const program = read("crates/acp-skills-proxy/Cargo.toml");
const version = manifest.match(/^\[workspace\.package\]\nversion = "(.*)"$/m)[1];

test("each platform is listed once with all facts", () => {
  for (const { target, runner, npm, archive } of platforms) {
    const systems = { "unknown-linux-musl": "linux", "apple-darwin": "darwin", "pc-windows-msvc": "win32" };
    const [cpu, ...system] = target.split("-");
    const expected = { os: systems[system.join("-")], cpu: { x86_64: "x64", aarch64: "arm64" }[cpu] };
    assert.deepEqual(npm, expected, target);
    assert.equal(archive, npm.os === "win32" ? "zip" : "tar.gz", target);
    assert.match(runner, { linux: /^ubuntu-/, darwin: /^macos-/, win32: /^windows-/ }[npm.os], target);
    // Programs are tested on a machine of their own architecture. GitHub's macOS runners are ARM unless their name ends in
    // `-intel`.
    const isArm = npm.os === "darwin" ? !runner.endsWith("-intel") : runner.endsWith("-arm");
    assert.equal(isArm, npm.cpu === "arm64", target);
  }
  assert.equal(new Set(platforms.map(({ target }) => target)).size, platforms.length);
});

test("licences are checked for every platform", () => {
  const targets = read(".deny.toml").match(/^targets = \[([^\]]*)\]/m)[1];
  for (const { target } of platforms) {
    assert.ok(targets.includes(`"${target}"`), `${target} is missing in .deny.toml`);
  }
});

test("the npm packages have this version, and the main package depends on all others", () => {
  const place = mkdtempSync(join(tmpdir(), "acp-skills-proxy-packaging-"));
  try {
    writeFileSync(join(place, "program"), "");
    const programs = platforms.map(({ npm }) => `${npm.os}-${npm.cpu}=${join(place, "program")}`);
    execFileSync(process.execPath, [join(CI, "npm/pack.mjs"), join(place, "out"), ...programs], { stdio: "pipe" });
    const packages = readdirSync(join(place, "out")).map((file) => {
      const text = execFileSync("tar", ["-xzOf", file, "package/package.json"], { cwd: join(place, "out") });
      return JSON.parse(text);
    });
    const main = packages.find(({ name }) => name === "acp-skills-proxy");
    const others = packages.filter((found) => found !== main);
    assert.deepEqual(
      main.optionalDependencies,
      Object.fromEntries(others.map((found) => [found.name, version]).sort()),
      "the launcher needs these packages",
    );
    assert.deepEqual([...new Set(packages.map((found) => found.version))], [version]);
    assert.equal(others.length, platforms.length);
    // The packages must not have install scripts.
    assert.deepEqual(packages.filter((found) => found.scripts), []);
  } finally {
    rmSync(place, { recursive: true });
  }
});

test("cargo binstall uses the URLs of the archives of a release", () => {
  const [all, ...overrides] = program.split(/^\[package\.metadata\.binstall/m).slice(1);
  const formats = new Map([["tar.gz", all]]);
  for (const override of overrides) {
    const target = override.match(/^\.overrides\.(.*)\]$/m)[1];
    assert.ok(platforms.some((platform) => platform.target === target && platform.archive === "zip"), target);
    formats.set(target, override);
  }
  for (const { target, archive } of platforms) {
    const section = formats.get(target) ?? formats.get("tar.gz");
    const url = `{ repo }/releases/download/v{ version }/{ name }-{ target }.${archive}`;
    assert.ok(section.includes(`pkg-url = "${url}"`), `the URL of ${target} should be ${url}`);
  }
});

// On Windows, the first `bash` in PATH may be that of WSL.
const skip = process.platform === "win32" && "the formula is generated on Linux";

test("the formula has all archives except those for Windows", { skip }, () => {
  const place = mkdtempSync(join(tmpdir(), "acp-skills-proxy-formula-"));
  try {
    const archives = platforms.filter(({ archive }) => archive === "tar.gz");
    for (const [index, { target }] of archives.entries()) {
      const file = `acp-skills-proxy-${target}.tar.gz`;
      writeFileSync(join(place, `${file}.sha256`), `${String(index).repeat(64)}  ${file}\n`);
    }
    const formula = execFileSync("bash", [join(CI, "homebrew/formula"), place], { encoding: "utf8" });
    for (const [index, { target }] of archives.entries()) {
      const url = `/releases/download/v${version}/acp-skills-proxy-${target}.tar.gz"\n      sha256 "${String(index).repeat(64)}"`;
      assert.ok(formula.includes(url), `the formula has no ${target}`);
    }
  } finally {
    rmSync(place, { recursive: true });
  }
});

test("crates of the workspace depend on each other in this version", () => {
  for (const [line, name, needed] of manifest.matchAll(/^(\S+) = \{ path = "crates\/.*version = "(.*?)".*$/gm)) {
    assert.equal(needed, version, `${name}: ${line}`);
  }
});

test("a missing C compiler for musl is reported before the build", { skip: process.platform !== "linux" }, () => {
  const place = mkdtempSync(join(tmpdir(), "acp-skills-proxy-packaging-"));
  try {
    // All programs that the script needs until then, and no compiler.
    for (const tool of ["bash", "cat", "dirname", "mkdir", "mktemp", "rm", "rustc", "sed", "tr"]) {
      const path = execFileSync("sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).trim();
      symlinkSync(path, join(place, tool));
    }
    const cpu = { x64: "x86_64", arm64: "aarch64" }[process.arch];
    const env = { ...process.env, PATH: place };
    for (const name of Object.keys(env)) if (/^(TARGET_)?CC(_|$)/.test(name)) delete env[name];
    const out = join(place, "out");
    const arguments_ = [join(CI, "package"), "--target", `${cpu}-unknown-linux-musl`, "--out", out, "archive"];
    const run = spawnSync("bash", arguments_, { env, encoding: "utf8" });
    assert.equal(run.status, 2, run.stderr);
    assert.match(run.stderr, /no C compiler for .*-linux-musl: install musl-gcc .*musl-tools/);
    assert.deepEqual(readdirSync(out), [], "--out can be an absolute path");
  } finally {
    rmSync(place, { recursive: true });
  }
});

test("every manifest has the addresses of the project and of its documentation", () => {
  for (const name of readdirSync(join(CI, "../crates"), { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    const text = read(`crates/${name.name}/Cargo.toml`);
    assert.match(text, /^homepage\.workspace = true$/m, name.name);
    assert.match(text, /^documentation = "https:\/\/.+"$/m, name.name);
  }
});
