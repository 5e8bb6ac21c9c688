// `open`, and the client that it gives.

import { MongoClient } from "mongodb";

import { Database } from "./database.js";
import { use } from "./local-server.js";

export { Database } from "./database.js";
export { DirectoryInUse, MergeConflicts } from "./errors.js";

/** A driver's `MongoClient` whose databases have versions. */
export class Client extends MongoClient {
  #release;

  constructor(uri, options, release) {
    super(uri, options);
    this.#release = release;
  }

  db(name, options) {
    return new Database(this, name || this.options.dbName, { ...this.options, ...options });
  }

  async close(force) {
    await super.close(force);
    await this.#release?.();
  }

  async clone(url, name = url.replace(/\/+$/, "").split("/").at(-1), options = {}) {
    await this.db(name).command({ frondClone: 1, from: url, ...options });
    return this.db(name);
  }
}

export async function open(directory, { memory, cache, logPath, ...options } = {}) {
  const { socket, release } = await use(directory, { memory, cache, logPath });
  try {
    const uri = `mongodb://${encodeURIComponent(socket)}/?directConnection=true`;
    return await new Client(uri, options, release).connect();
  } catch (error) {
    await release();
    throw error;
  }
}

export function connect(uri = "mongodb://127.0.0.1:27017", options = {}) {
  return new Client(uri, options).connect();
}
