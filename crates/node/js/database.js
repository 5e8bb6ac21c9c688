// A database with its versions.

import { Db } from "mongodb";

import { MergeConflicts } from "./errors.js";

const OPERATION_FAILED = 96;

/** A driver's `Db` with versions: a branch's working state, or a version to read. */
export class Database extends Db {
  #client;
  #options;

  constructor(client, name, options) {
    super(client, name, options);
    this.#client = client;
    this.#options = options;
  }

  get branchName() {
    const [, version] = this.databaseName.split("@", 2);
    return version === undefined ? null : decodeURIComponent(version);
  }

  at(revision) {
    const [name] = this.databaseName.split("@", 1);
    return new Database(this.#client, `${name}@${quoted(revision)}`, this.#options);
  }

  checkout(branch) {
    return this.at(branch);
  }

  commit(message, options) {
    return this.#run("frondCommit", { message, ...options });
  }

  status(options) {
    return this.#run("frondStatus", options);
  }

  async log(range, { limit = Infinity, after, ...fields } = {}) {
    const commits = [];
    do {
      const left = limit === Infinity ? undefined : limit - commits.length;
      const page = await this.#run("frondLog", { range, limit: left, after, ...fields });
      commits.push(...page.commits);
      after = page.next;
    } while (after !== undefined && commits.length < limit);
    return commits;
  }

  async branch(name, { start, protected: guarded, expireAfterSeconds } = {}) {
    await this.#run("frondBranch", { branch: name, start, protected: guarded, expireAfterSeconds });
    return this.at(name);
  }

  async branches(options) {
    return (await this.#run("frondBranch", options)).branches;
  }

  async deleteBranch(name, { force } = {}) {
    await this.#run("frondBranch", { branch: name, delete: true, forceDelete: force });
  }

  tag(name, options) {
    return this.#run("frondTag", { tag: name, ...options });
  }

  diff(from, to, options) {
    return this.aggregate([{ $diff: defined({ from, to, ...options }) }]);
  }

  async merge(revision, options) {
    try {
      return await this.#run("frondMerge", { merge_in: revision, ...options });
    } catch (error) {
      const answer = error.errorResponse ?? {};
      if (error.code === OPERATION_FAILED && answer.result === "conflicts") {
        throw new MergeConflicts(this, answer.conflicts);
      }
      throw error;
    }
  }

  mergeContinue(options) {
    return this.#run("frondMerge", { continue: true, ...options });
  }

  mergeAbort() {
    return this.#run("frondMerge", { abort: true });
  }

  conflicts(collection) {
    return this.aggregate([{ $conflicts: defined({ collection }) }]);
  }

  async resolve(which, decision) {
    return (await this.#run("frondResolveConflict", { ...chosen(which), ...decision })).remaining;
  }

  reset(target, options) {
    return this.#run("frondReset", { target, ...options });
  }

  undo(options) {
    return this.#run("frondUndo", options);
  }

  async history(collection, id, options) {
    return (await this.#run("frondHistory", { collection, document: id, ...options })).versions;
  }

  async blame(collection, id) {
    return (await this.#run("frondBlame", { collection, document: id })).fields;
  }

  push(options) {
    return this.#run("frondPush", options);
  }

  pull(options) {
    return this.#run("frondPull", options);
  }

  #run(command, fields) {
    return this.command({ [command]: 1, ...defined(fields) });
  }
}

/** The driver sends what is undefined as null, which is a value. */
function defined(fields = {}) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A conflict (one of `conflicts()`, or its id), or `{ collection }`, or `{ all: true }`. */
function chosen(which) {
  if (typeof which === "string") return { id: which };
  return which.kind === undefined ? which : { id: which.id };
}

/** What drivers refuse in a name is percent-encoded, as the server reads it. */
function quoted(revision) {
  const encode = (letter) =>
    [...new TextEncoder().encode(letter)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
  return revision.replace(/[^\w~^@{}-]/gu, encode);
}
