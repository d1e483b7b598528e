// Tests of the comparison with the ACP registry: `node --test .ci/registry.test.mjs`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { compare, rows } from "./registry.mjs";

const npx = (id, name, args) => ({ id, name: id, distribution: { npx: { package: name, args } } });

test("equal rows give no findings", () => {
  const registry = {
    agents: [
      npx("a", "@x/a@1.2.3", ["--acp"]),
      { id: "b", name: "b", distribution: { uvx: { package: "b-cli==1.2", args: ["acp"] } } },
      { id: "c", name: "c", distribution: { binary: { "linux-x86_64": { cmd: "./c", args: ["acp"] } } } },
    ],
  };
  const table = [
    { id: "a", program: ["a", "--acp"], npx: "@x/a" },
    { id: "b", program: ["b", "acp"], uvx: "b-cli" },
    // The table may have a package for a program that the registry offers as a binary.
    { id: "c", program: ["c", "acp"], npx: "c" },
    { id: "ours", program: ["ours"], registry: false },
  ];
  assert.deepEqual(compare(table, registry), { wrong: [], different: [] });
});

test("differences are findings", () => {
  const registry = { agents: [npx("a", "new@1", ["--acp"]), npx("d", "d@1"), npx("back", "back")] };
  const table = [
    { id: "a", program: ["a", "--experimental"], npx: "old" },
    { id: "gone", program: ["gone"] },
    { id: "back", program: ["back"], npx: "back", registry: false },
  ];
  const { wrong, different } = compare(table, registry);
  assert.deepEqual(different, ['a: its arguments are "--acp" there, and "--experimental" here']);
  assert.equal(wrong.length, 4);
  for (const [at, part] of ['a: "npx" is "new" there', "gone: the registry does not have it", "back: the registry has it", "d (d) is not in the table"].entries()) {
    assert.ok(wrong[at].startsWith(part), wrong[at]);
  }
});

test("rows are read from the table of the program", () => {
  const table = rows(readFileSync(new URL("../crates/acp-skills-intercept/src/known_agents/table.rs", import.meta.url), "utf8"));
  const row = (id) => table.find((agent) => agent.id === id);
  assert.ok(table.length > 30, `${table.length} rows`);
  assert.deepEqual(row("factory-droid"), {
    id: "factory-droid",
    name: "Factory Droid",
    program: ["droid", "exec", "--output-format", "acp"],
    npx: "droid",
    uvx: undefined,
    registry: true,
  });
  assert.deepEqual([row("bub").uvx, row("bub").registry], ["bub", false]);
  assert.deepEqual(table.filter((agent) => agent.program.length === 0), []);
});
