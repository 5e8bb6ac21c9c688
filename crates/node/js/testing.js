// A database for tests: fixtures are a commit, and each test has a branch that begins there.

import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { open } from "./index.js";

const NAME = "test";

// Nothing waits for a disk in memory: a branch is reset in a millisecond there, in ten on a disk.
const MEMORY = "/dev/shm";
const MEMORY_BYTES_MIN = 2 ** 30;

/** What `openForTests` gives. */
export class TestDatabase {
  #directory;
  #taken = 0;

  constructor(client, directory) {
    this.client = client;
    this.base = client.db(NAME);
    this.#directory = directory;
  }

  async branch() {
    this.#taken += 1;
    return this.base.branch(`test-${this.#taken}`);
  }

  async reset(database) {
    await database.reset("HEAD", { hard: true });
  }

  async drop(database) {
    await this.base.deleteBranch(database.branchName, { force: true });
  }

  async close() {
    await this.client.close();
    if (this.#directory) await rm(this.#directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

export async function openForTests({ fixtures, directory, ...options } = {}) {
  const own = directory ? null : await mkdtemp(join(await place(), `frond-test-${process.pid}-`));
  const client = await open(directory ?? own, options);
  const test = new TestDatabase(client, own);
  try {
    await test.base.dropDatabase();
    await fixtures?.(test.base);
    await test.base.commit("fixtures", { allowEmpty: true });
    return test;
  } catch (error) {
    await test.close();
    throw error;
  }
}

/** Where a directory that goes anyway may lie. */
async function place() {
  try {
    const { bavail, bsize } = await statfs(MEMORY);
    return bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}
