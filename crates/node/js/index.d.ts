import { Db, MongoClient } from "mongodb";
import type { AggregationCursor, DbOptions, Document, MongoClientOptions, UpdateFilter } from "mongodb";

/** How a directory is opened. The other options are the driver's. */
export interface OpenOptions extends MongoClientOptions {
  /** What the database may take, in bytes; by default a part of what the machine has. */
  memory?: number;
  /** What it keeps decompressed of that, in bytes. */
  cache?: number;
  /** A file for the database's log. */
  logPath?: string;
}

/**
 * Opens a data directory, making it where it is missing, and returns a client of it.
 *
 * The database runs in this process, in threads of its own, and is reached by a private socket. If
 * another process of this user has opened the directory, the client is one of that. Close the client:
 * the last one closes the data directory. What was acknowledged is on the disk either way.
 */
export function open(directory: string, options?: OpenOptions): Promise<Client>;

/** A client of a server that runs elsewhere (`frond serve`), with the same methods. */
export function connect(uri?: string, options?: MongoClientOptions): Promise<Client>;

/** A driver's `MongoClient` whose databases have versions. */
export class Client extends MongoClient {
  db(name?: string, options?: DbOptions): Database;
  /** Clones a database from a remote (`http://HOST:PORT/NAME`) and returns it. */
  clone(url: string, name?: string, options?: { token?: string; depth?: number }): Promise<Database>;
}

/** A driver's `Db` with versions: a branch's working state, or a version to read. */
export class Database extends Db {
  /** The branch (or version) that the name says; null for the default branch. */
  readonly branchName: string | null;

  /** The database at another branch, or, to read only, at a tag, a commit, `main~2` ... */
  at(revision: string): Database;
  /** As `at`, by git's word: nothing is switched, this database stays what it is. */
  checkout(branch: string): Database;

  /** Commits the working state. */
  commit(message: string, options?: CommitOptions): Promise<Commit>;
  /** What has changed since the last commit; `documents` names so many of each collection. */
  status(options?: { documents?: number }): Promise<Status>;
  /** Commits, newest first; `range` is a revision, or `a..b`. */
  log(range?: string, options?: LogOptions): Promise<Commit[]>;

  /** Makes a branch, at this state's commit or at `start`, and returns its database. */
  branch(name: string, options?: BranchOptions): Promise<Database>;
  branches(options?: { details?: boolean }): Promise<Branch[]>;
  /** Deletes a branch; one that isn't merged, or has uncommitted changes, by `force` only. */
  deleteBranch(name: string, options?: { force?: boolean }): Promise<void>;
  /** Names a commit, by default the newest of this branch. */
  tag(name: string, options?: { target?: string; message?: string; force?: boolean }): Promise<Document>;

  /** How two versions differ: by default the last commit and the working state. */
  diff(from?: string, to?: string, options?: DiffOptions): AggregationCursor<Change>;

  /**
   * Merges another version into this branch. Throws `MergeConflicts` where documents were changed on
   * both sides: what merged cleanly is in the working state then, and the merge waits.
   */
  merge(revision: string, options?: MergeOptions): Promise<Merged>;
  /** Commits a merge whose conflicts are all decided. */
  mergeContinue(options?: { message?: string; author?: string }): Promise<Merged>;
  /** Takes back what a merge that waits has done. */
  mergeAbort(): Promise<Merged>;
  /** The conflicts of the merge that waits. */
  conflicts(collection?: string): AggregationCursor<Conflict>;
  /** Decides conflicts: one, those of a collection, or all. Returns how many are left. */
  resolve(which: Conflict | string | { collection: string } | { all: true }, decision: Decision): Promise<number>;

  /** Moves this branch to a commit (by default its last), with `hard` its working state, too. */
  reset(target?: string, options?: { hard?: boolean }): Promise<Document>;
  /** Takes back the last change of this branch: a commit, merge, reset, deletion ... */
  undo(options?: { branch?: string; change?: number | bigint }): Promise<Document>;
  /** The versions of a document, newest first. */
  history(collection: string, id: unknown, options?: LogOptions): Promise<Version[]>;
  /** Which commit each field of a document comes from. */
  blame(collection: string, id: unknown): Promise<(Partial<Commit> & { path: string; value: unknown })[]>;

  push(options?: Document): Promise<Document>;
  pull(options?: Document): Promise<Document>;
}

export interface Commit {
  commitId: string;
  parents: string[];
  message: string;
  author: string;
  timestamp: Date;
  committer?: string;
  authored?: Date;
  automatic?: boolean;
}

export interface CommitOptions {
  /** `Ada <ada@example.org>` */
  author?: string;
  committer?: string;
  time?: Date;
  allowEmpty?: boolean;
  amend?: boolean;
}

export interface LogOptions {
  limit?: number;
  skip?: number;
  after?: string;
  collection?: string;
  document?: unknown;
  author?: string;
  message?: string;
  text?: string;
  since?: Date;
  until?: Date;
  firstParent?: boolean;
}

export interface Branch {
  branch: string;
  commitId: string;
  protected?: boolean;
  closed?: boolean;
  expires?: Date;
  timestamp?: Date;
  message?: string;
  ahead?: number;
  behind?: number;
}

export interface BranchOptions {
  start?: string;
  protected?: boolean;
  expireAfterSeconds?: number;
}

export interface Status {
  branch: string;
  head: string;
  dirty: boolean;
  collections: Document[];
  merging?: string;
  conflicts: { collection: string; count: number }[];
}

export interface DiffOptions {
  collection?: string;
  document?: unknown;
  /** Whether rows have the whole documents `before` and `after`: they do by default. */
  whole?: boolean;
}

export interface FieldChange {
  type: string;
  path: string;
  from?: unknown;
  to?: unknown;
}

export interface Change {
  _id: unknown;
  collection: string;
  kind: "document" | "index" | "options" | "collection";
  change: "added" | "removed" | "modified";
  changes?: FieldChange[];
  before?: Document;
  after?: Document;
}

export interface Version extends Partial<Commit> {
  change: "added" | "removed" | "modified";
  changes: FieldChange[];
  document?: Document;
}

export interface MergeOptions {
  message?: string;
  author?: string;
  noFF?: boolean;
  ffOnly?: boolean;
  squash?: boolean;
  refuseDirty?: boolean;
  dryRun?: boolean;
  [howDocumentsMerge: string]: unknown;
}

export interface Merged extends Partial<Commit> {
  result: "merged" | "fastForward" | "upToDate" | "aborted" | "conflicts";
  branch: string;
}

export interface Conflict {
  id: string;
  collection: string;
  kind: "document" | "unique" | "validator" | "indexKey" | "collection" | "options" | "index";
  _id?: unknown;
  paths?: string[];
  base?: Document | null;
  ours?: Document | null;
  theirs?: Document | null;
}

export type Decision =
  | { resolution: "ours" | "theirs" }
  | { value: Document | null }
  | { update: UpdateFilter<Document> | Document[] };

/** A merge that waits for decisions. */
export class MergeConflicts extends Error {
  readonly database: Database;
}

/** Another process has the data directory, and can't be reached. */
export class DirectoryInUse extends Error {}
