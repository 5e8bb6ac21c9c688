// Asking the server. Commands and answers are canonical extended JSON: see values.js.

import { of, read, write } from "./values.js";

/** What a command answered with ok: 0. */
export class CommandError extends Error {
  constructor(answer) {
    const it = answer.plain();
    super(it.errmsg ?? "the command failed");
    this.name = "CommandError";
    this.code = it.code;
    this.codeName = it.codeName;
    this.answer = answer;
  }
}

const listeners = new Set();
/** Calls `listener` when the server asks for a login. */
export const onLoginNeeded = (listener) => listeners.add(listener);

async function post(path, body, signal) {
  let response;
  try {
    response = await fetch(path, { method: "POST", body, signal, credentials: "same-origin",
      headers: { "content-type": "application/json", "x-frond-console": "1" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server can't be reached");
  }
  const text = await response.text();
  if (response.ok) return read(text);
  const error = new Error(text.trim() || `the server answered ${response.status}`);
  error.status = response.status;
  if (response.status === 401 && path === "/api/command") for (const listener of listeners) listener();
  throw error;
}

export const session = async () => (await post("/api/session", "{}")).plain();
export const logIn = async (user, password, database) =>
  (await post("/api/login", JSON.stringify({ user, password, database }))).plain();
export const logOut = async () => (await post("/api/logout", "{}")).plain();

/** Runs a command; returns its answer with types. Throws a CommandError if it fails. */
export async function run(db, command, { signal } = {}) {
  const answer = await post("/api/command", write(of({ db, command })), signal);
  if (Number(answer.get("ok")?.v) !== 1) throw new CommandError(answer);
  const failed = answer.get("writeErrors")?.v?.[0];
  if (failed) throw new CommandError(failed);
  return answer;
}

/** The same, as values of JavaScript. */
export const ask = async (db, command, options) => (await run(db, command, options)).plain();

/** All documents of a command that answers with a cursor, up to `max`; tells whether there are more. */
export async function documents(db, command, { max = 1000, signal } = {}) {
  let answer = await run(db, command, { signal });
  const found = [...answer.get("cursor").get("firstBatch").v];
  let id = answer.get("cursor").get("id");
  const namespace = answer.get("cursor").get("ns").v;
  const collection = namespace.slice(namespace.indexOf(".") + 1);
  while (id.v !== "0" && found.length < max) {
    answer = await run(db, { getMore: id, collection }, { signal });
    found.push(...answer.get("cursor").get("nextBatch").v);
    id = answer.get("cursor").get("id");
  }
  if (id.v !== "0") run(db, { killCursors: collection, cursors: [id] }).catch(() => {});
  return { documents: found.slice(0, max), more: id.v !== "0" || found.length > max };
}
