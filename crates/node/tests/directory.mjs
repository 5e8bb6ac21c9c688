// A directory for a test, and programs that run beside it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));

/** The path of a data directory that isn't there yet. */
export function dataFor(test) {
  const directory = mkdtempSync(join(tmpdir(), "frond-node-test-"));
  test.after(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, "data");
}

/** Runs a program in a process of its own: how it ended, and what it printed. */
export async function run(program, ...args) {
  const child = begin(program, ...args);
  const [printed, [code, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return { ended: signal ?? code, printed };
}

/** As `run`, without waiting. */
export function begin(program, ...args) {
  const command = ["--input-type=module", "--eval", program, "--", ...args];
  return spawn(process.execPath, command, { cwd: here, stdio: ["pipe", "pipe", "inherit"] });
}

export async function count(client) {
  return client.db("shop").collection("items").countDocuments();
}

/** Waits for a line that a program prints. */
export async function printed(child, line) {
  const [data] = await once(child.stdout, "data");
  assert.equal(String(data).trim(), line);
}
