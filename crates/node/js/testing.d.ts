import type { Client, Database, OpenOptions } from "./index.js";

export interface TestOptions extends OpenOptions {
  /** Fills the database with what each test finds. */
  fixtures?: (base: Database) => Promise<unknown>;
  /** The data directory, which stays; by default one that goes with `close`, in memory
   * (`/dev/shm`) where there is room, so that nothing waits for a disk. */
  directory?: string;
}

/** Opens a database for tests, in milliseconds. */
export function openForTests(options?: TestOptions): Promise<TestDatabase>;

/** A database for tests: fixtures are a commit, and each test has a branch that begins there. */
export class TestDatabase implements AsyncDisposable {
  readonly client: Client;
  /** The database that the branches begin at. */
  readonly base: Database;
  /** The fixtures, on a branch of its own: tests run side by side. */
  branch(): Promise<Database>;
  /** Takes a branch back to its last commit: the fixtures, where the test committed nothing. */
  reset(database: Database): Promise<void>;
  /** Deletes a branch. */
  drop(database: Database): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
