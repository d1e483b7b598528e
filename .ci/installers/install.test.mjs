// Tests of `install.sh` with an archive that the test creates: `node --test .ci/installers/install.test.mjs`.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const NAME = "acp-skills-proxy";
const platforms = JSON.parse(readFileSync(join(HERE, "../platforms.json"), "utf8"));
const here = platforms.find(({ npm }) => npm.os === process.platform && npm.cpu === process.arch);

let root;

/** Creates a directory with the archive of this platform. Its program is a shell script. Returns the path of the archive. */
function publish(script) {
  const place = mkdtempSync(join(root, "release-"));
  const base = `${NAME}-${here.target}`;
  mkdirSync(join(place, base));
  writeFileSync(join(place, base, NAME), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const archive = join(place, `${base}.tar.gz`);
  execFileSync("tar", ["-C", place, "-czf", archive, base]);
  const sum = createHash("sha256").update(readFileSync(archive)).digest("hex");
  writeFileSync(`${archive}.sha256`, `${sum}  ${base}.tar.gz\n`);
  return archive;
}

function install(archive, env = {}, script = join(HERE, "install.sh")) {
  const home = mkdtempSync(join(root, "home-"));
  const all = { PATH: process.env.PATH, HOME: home, ACP_SKILLS_PROXY_DOWNLOAD: `file://${dirname(archive)}`, ...env };
  const { status, stdout, stderr } = spawnSync("sh", [script], { env: all, encoding: "utf8", timeout: 60_000 });
  return { home, status, stdout, stderr, program: join(home, ".local/bin", NAME) };
}

before(() => {
  root = mkdtempSync(join(tmpdir(), `${NAME}-installer-`));
});

after(() => rmSync(root, { recursive: true }));

const skip = here?.archive !== "tar.gz" && "install.sh does not support this platform";

describe("install.sh", { skip }, () => {
  test("installs the program, and prints a hint about PATH", () => {
    const { home, status, stdout, stderr, program } = install(publish("echo the first"));
    assert.deepEqual([status, stderr], [0, ""]);
    assert.equal(execFileSync(program, { encoding: "utf8" }), "the first\n");
    assert.match(stdout, /installed the first as .*\.local\/bin\/acp-skills-proxy\nhint: .* is not in your PATH/);
    assert.deepEqual(readdirSync(join(home, ".local/bin")), [NAME]);
  });

  test("a newer version replaces an older one, in a directory with a space", () => {
    const to = join(root, "my programs");
    for (const word of ["older", "newer"]) {
      const env = { ACP_SKILLS_PROXY_INSTALL_DIR: to, PATH: `${process.env.PATH}:${to}` };
      const { status, stdout } = install(publish(`echo ${word}`), env);
      assert.equal(status, 0);
      assert.doesNotMatch(stdout, /hint/);
    }
    assert.equal(execFileSync(join(to, NAME), { encoding: "utf8" }), "newer\n");
  });

  test("an archive with a wrong checksum is not installed", () => {
    const archive = publish("echo good");
    appendFileSync(archive, "more");
    const { status, stderr, program } = install(archive);
    assert.equal(status, 1);
    assert.match(stderr, /^error: the checksum of the archive is wrong: its SHA-256 is \w{64}, but should be \w{64}\nhint: /);
    assert.equal(existsSync(program), false);
  });

  test("an archive with an empty checksum is not installed", () => {
    const archive = publish("echo good");
    writeFileSync(`${archive}.sha256`, "");
    const { status, program } = install(archive);
    assert.deepEqual([status, existsSync(program)], [1, false]);
  });

  test("a missing version, an invalid directory and an unknown system are errors", () => {
    const gone = install(join(root, "nowhere", "archive"));
    assert.equal(gone.status, 1);
    assert.match(gone.stderr, /error: cannot download file:.*\nhint: check the network connection/);
    writeFileSync(join(root, "file"), "");
    const blocked = install(publish("echo"), { ACP_SKILLS_PROXY_INSTALL_DIR: join(root, "file/bin") });
    assert.equal(blocked.status, 1);
    assert.match(blocked.stderr, /error: cannot create .*file\/bin\nhint: set ACP_SKILLS_PROXY_INSTALL_DIR to another directory/);
    const bin = mkdtempSync(join(root, "bin-"));
    writeFileSync(join(bin, "uname"), "#!/bin/sh\necho Plan9\n", { mode: 0o755 });
    const other = install(publish("echo"), { PATH: `${bin}:${process.env.PATH}` });
    assert.equal(other.status, 1);
    assert.match(other.stderr, /^error: there is no archive for Plan9\nhint: .*cargo install/);
  });

  test("a partial download of the script does nothing", () => {
    const text = readFileSync(join(HERE, "install.sh"), "utf8");
    const half = join(root, "half.sh");
    writeFileSync(half, text.slice(0, text.lastIndexOf("main")));
    const { status, stdout, program } = install(publish("echo"), {}, half);
    assert.deepEqual([status, stdout, existsSync(program)], [0, "", false]);
  });
});

test("the installers support every platform", () => {
  const scripts = { "tar.gz": readFileSync(join(HERE, "install.sh"), "utf8"), zip: readFileSync(join(HERE, "install.ps1"), "utf8") };
  for (const { target, archive } of platforms) {
    const [arch, ...system] = target.split("-");
    const words = archive === "zip" ? [`'${target}'`] : [`arch=${arch}`, `system=${system.join("-")}`];
    for (const word of words) {
      assert.ok(scripts[archive].includes(word), `the installer does not contain ${word}`);
    }
  }
});
