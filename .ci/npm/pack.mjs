#!/usr/bin/env node
// Packs the npm packages: `acp-skills-proxy` with the launcher, and a package with the program for each platform.
//
//   pack.mjs [--all] OUT PLATFORM=PROGRAM…     PLATFORM is Node.js's name of it, for example linux-x64
//
// Writes the launcher's package and those of the given platforms as .tgz files to OUT. With --all, which releases use, every
// platform must be given. The version and the licence are taken from Cargo.toml, the platforms from ../platforms.json.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(HERE, "../..");
const NAME = "acp-skills-proxy";

function usage(message) {
  console.error(`error: ${message}\nusage: pack.mjs [--all] OUT PLATFORM=PROGRAM…`);
  process.exit(2);
}

/** Returns the value of a key of `[workspace.package]`. */
function workspace(key) {
  const manifest = readFileSync(join(ROOT, "Cargo.toml"), "utf8");
  const section = manifest.split(/^\[workspace\.package\]$/m)[1].split(/^\[/m)[0];
  const value = section.match(new RegExp(`^${key} = "(.*)"$`, "m"));
  if (!value) {
    throw new Error(`Cargo.toml has no ${key} in [workspace.package]`);
  }
  return value[1];
}

const platforms = JSON.parse(readFileSync(join(ROOT, ".ci/platforms.json"), "utf8"));
const known = new Map(platforms.map(({ npm }) => [`${npm.os}-${npm.cpu}`, npm]));
const version = workspace("version");
const common = {
  version,
  license: workspace("license"),
  homepage: workspace("homepage"),
  repository: { type: "git", url: `git+${workspace("repository")}.git` },
  publishConfig: { access: "public", provenance: true },
};

/** Packs a directory with the manifest, the licences, a README and the files that `fill` adds. */
function pack(out, manifest, readme, fill) {
  const directory = mkdtempSync(join(tmpdir(), `${NAME}-npm-`));
  try {
    writeFileSync(join(directory, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    writeFileSync(join(directory, "README.md"), readme);
    for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
      copyFileSync(join(ROOT, licence), join(directory, licence));
    }
    fill(directory);
    // On Windows, npm is a script and needs a shell, so quote the path.
    const isWindows = process.platform === "win32";
    const target = isWindows ? `"${out}"` : out;
    const options = { cwd: directory, encoding: "utf8", shell: isWindows, stdio: ["ignore", "pipe", "inherit"] };
    const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", target], options);
    console.log(join(out, packed.trim()));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function packMain(out) {
  const manifest = {
    name: NAME,
    ...common,
    description: "Agent Skills for every ACP agent, in any editor",
    keywords: ["acp", "agent-client-protocol", "agent-skills", "skills", "mcp", "proxy"],
    bin: { [NAME]: "launcher.cjs" },
    files: ["launcher.cjs", "LICENSE-*"],
    engines: { node: ">=18" },
    // The launcher needs the program of exactly this version.
    optionalDependencies: Object.fromEntries([...known.keys()].map((name) => [`@acp-skills/proxy-${name}`, version])),
  };
  pack(out, manifest, readFileSync(join(HERE, "README.md"), "utf8"), (directory) => {
    copyFileSync(join(HERE, "launcher.cjs"), join(directory, "launcher.cjs"));
    chmodSync(join(directory, "launcher.cjs"), 0o755);
  });
}

function packPlatform(out, name, program) {
  const { os, cpu } = known.get(name);
  const manifest = {
    name: `@acp-skills/proxy-${name}`,
    ...common,
    description: `The program of ${NAME} for ${os} on ${cpu}`,
    os: [os],
    // There is no `libc` key, because the Linux program is linked statically.
    cpu: [cpu],
    files: ["bin", "LICENSE-*"],
    // Yarn keeps packages in zip files by default, and a program cannot be started from one.
    preferUnplugged: true,
  };
  const readme = `# @acp-skills/proxy-${name}\n\nThe program of [${NAME}](https://www.npmjs.com/package/${NAME}) for ${os} on ${cpu}. Install that one.\n`;
  pack(out, manifest, readme, (directory) => {
    mkdirSync(join(directory, "bin"));
    const file = join(directory, "bin", os === "win32" ? `${NAME}.exe` : NAME);
    copyFileSync(program, file);
    // Files that CI passes between jobs lose their mode.
    chmodSync(file, 0o755);
  });
}

const args = process.argv.slice(2);
const isRelease = args[0] === "--all";
const [out, ...given] = args.slice(isRelease ? 1 : 0);
if (out === undefined || given.length === 0) {
  usage("expected a directory and at least one program");
}
const programs = given.map((argument) => {
  const [, name, program] = argument.match(/^([^=]+)=(.+)$/) ?? usage(`${argument} is not PLATFORM=PROGRAM`);
  if (!known.has(name)) {
    usage(`unknown platform ${name}; known platforms: ${[...known.keys()].join(", ")}`);
  }
  if (!existsSync(program)) {
    usage(`${program} does not exist`);
  }
  return [name, program];
});
const missing = [...known.keys()].filter((name) => !programs.some(([given]) => given === name));
if (isRelease && missing.length > 0) {
  usage(`--all needs every platform; missing: ${missing.join(", ")}`);
}
mkdirSync(out, { recursive: true });
for (const [name, program] of programs) {
  packPlatform(resolve(out), name, program);
}
packMain(resolve(out));
