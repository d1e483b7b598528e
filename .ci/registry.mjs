// Compares the table of known agents with the ACP registry:
//
//   node .ci/registry.mjs [FILE|ADDRESS]
//
// Exits with code 1 and prints the corrections if the table lacks an agent of the registry, has an identifier that the registry
// does not know, or starts another package. Different arguments are only notes, because some were chosen after trying.
import { readFileSync } from "node:fs";
import { argv, exit } from "node:process";
import { fileURLToPath } from "node:url";

const REGISTRY = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json";
const TABLE = new URL("../crates/acp-skills-intercept/src/known_agents/table.rs", import.meta.url);

/** Removes the version from the name of a package, such as `@a/b@1.2` or `a==1.2`. */
const unversioned = (name) => name.replace(/(==|(?<=.)@[^/]*$).*/, "");

/** Reads the rows of the table from the text of `table.rs`. */
export function rows(source) {
  const text = "\\s*\"([^\"]*)\"";
  const head = new RegExp(`^\\(${text},${text},\\s*&\\[([^\\]]*)\\]`);
  return source.split("    Agent::new").slice(1).map((row) => {
    const parts = row.match(head);
    if (!parts) {
      throw new Error(`cannot parse a row of the table: ${row.slice(0, 80)}`);
    }
    const [, id, name, program] = parts;
    const call = (method) => row.match(new RegExp(`\\.${method}\\(${text},?\\s*\\)`))?.[1];
    const words = [...program.matchAll(/"([^"]*)"/g)].map(([, word]) => word);
    return { id, name, program: words, npx: call("npx"), uvx: call("uvx"), registry: !row.includes(".unregistered()") };
  });
}

/** Compares `table` with the registry. Returns errors in the table as `wrong`, and acceptable differences as `different`. */
export function compare(table, registry) {
  const wrong = [];
  const different = [];
  const theirs = new Map(registry.agents.map((agent) => [agent.id, agent]));
  for (const agent of table) {
    const other = theirs.get(agent.id);
    theirs.delete(agent.id);
    if ((other !== undefined) !== (agent.registry ?? true)) {
      wrong.push(`${agent.id}: the registry ${other ? "has" : "does not have"} it, so "registry" should be ${other !== undefined}`);
    }
    if (!other) {
      continue;
    }
    for (const runner of ["npx", "uvx"]) {
      const name = other.distribution[runner] && unversioned(other.distribution[runner].package);
      if (name && name !== agent[runner]) {
        wrong.push(`${agent.id}: "${runner}" is "${name}" there, and ${JSON.stringify(agent[runner]) ?? "nothing"} here`);
      }
    }
    const [runner] = ["npx", "uvx"].filter((runner) => other.distribution[runner]);
    const started = runner ? other.distribution[runner] : Object.values(other.distribution.binary ?? {})[0];
    const there = (started?.args ?? []).join(" ");
    const here = agent.program.slice(1).join(" ");
    if (there !== here) {
      different.push(`${agent.id}: its arguments are "${there}" there, and "${here}" here`);
    }
  }
  for (const { id, name, distribution } of theirs.values()) {
    wrong.push(`${id} (${name}) is not in the table: ${JSON.stringify(distribution.npx ?? distribution.uvx ?? "a program")}`);
  }
  return { wrong, different };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const from = argv[2] ?? REGISTRY;
  const read = async (address) => {
    const answer = await fetch(address);
    if (!answer.ok) {
      throw new Error(`${address}: ${answer.status}`);
    }
    return answer.text();
  };
  const text = /^https?:/.test(from) ? await read(from) : readFileSync(from, "utf8");
  const registry = JSON.parse(text);
  const { wrong, different } = compare(rows(readFileSync(TABLE, "utf8")), registry);
  for (const line of different) {
    console.log(`note: ${line}`);
  }
  for (const line of wrong) {
    console.error(`error: ${line}`);
  }
  console.log(`${registry.agents.length} agents in the registry; ${wrong.length} errors in the table, ${different.length} notes`);
  exit(wrong.length > 0 ? 1 : 0);
}
