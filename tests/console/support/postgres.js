// A database of its own on the PostgreSQL server of the tests, and many rows in it.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import pg from "pg";

/** Fills the embedded database, and tells what PostgreSQL is filled with. */
export const FILL = fileURLToPath(new URL("fill.py", import.meta.url));

async function connected(url, act) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}

/** Makes an empty database on the server that a URL names. */
export async function createDatabase(server) {
  const name = `console_${process.pid}`;
  const url = new URL(server);
  await connected(server, (client) => client.query(`CREATE DATABASE ${name}`));
  url.pathname = name;
  return {
    url: url.href,
    /** Copies what is there until so many rows are; resolves with the numbers of submissions and incidents. */
    fill: (rows) => connected(url.href, (client) => fill(client, rows)),
    drop: () => connected(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  };
}

async function fill(client, rows) {
  const counted = async () => {
    const { rows: [row] } = await client.query("SELECT (SELECT count(*) FROM submission)::int AS submissions, (SELECT count(*) FROM incident)::int AS incidents");
    return [row.submissions, row.incidents];
  };
  const plan = JSON.parse(execFileSync("python3", [FILL, "--plan", ...(await counted()).map(String), String(rows)], { encoding: "utf8" }));
  for (const [table, count, changes] of plan) {
    const { rows: columns } = await client.query("SELECT column_name AS name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1", [table]);
    const names = columns.map(({ name }) => name);
    const missing = Object.keys(changes).filter((name) => !names.includes(name));
    if (missing.length > 0) throw new Error(`${table} has no ${missing}`);
    const values = names.map((name) => changes[name] ?? `m.${name}`);
    await client.query(`INSERT INTO ${table} (${names}) SELECT ${values} FROM (SELECT * FROM ${table}) m, generate_series(1::bigint, ${count}) n`);
  }
  // As the server does by itself within minutes.
  await client.query("VACUUM ANALYZE");
  return counted();
}
