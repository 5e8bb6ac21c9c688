// The servers that run in this process: one a data directory, however often it is opened.
//
// Other processes of the same user, and other threads of Node's, find the directory in use and reach
// the data through the one that has it.

import { mkdir, realpath } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

import { DirectoryInUse } from "./errors.js";
import * as native from "./native.js";

// For so long a process that has the directory may be about to listen, or to end.
const PATIENCE_MS = 3000;
const PAUSE_MS = 20;

// By the directory's path: how many use the server, and the server, once it has started.
const running = new Map();

/** The server of `directory`: `{ socket, release }`. It stops with the last release. */
export async function use(directory, options) {
  await mkdir(directory, { recursive: true });
  const path = await realpath(directory);
  const entry = running.get(path) ?? begin(path, options);
  entry.uses += 1;
  const { socket } = await entry.started;
  let released = false;
  const release = async () => {
    if (released) return;
    released = true;
    entry.uses -= 1;
    if (entry.uses > 0) return;
    forget(path, entry);
    await entry.server?.stop();
  };
  return { socket, release };
}

function begin(path, options) {
  const entry = { uses: 0, server: null };
  running.set(path, entry);
  entry.started = find(path, options).then(
    (found) => {
      entry.server = found.server;
      // Of another process: it may have ended when the directory is opened again.
      if (!found.server) forget(path, entry);
      return found;
    },
    (error) => {
      forget(path, entry);
      throw error;
    },
  );
  return entry;
}

function forget(path, entry) {
  if (running.get(path) === entry) running.delete(path);
}

async function find(path, options) {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const server = await native.start(path, options);
    if (server) return { server, socket: server.socket };
    const socket = native.socketOf(path);
    if (socket) return { server: null, socket };
    if (performance.now() > deadline) throw new DirectoryInUse(path);
    await sleep(PAUSE_MS);
  }
}

process.on("exit", () => {
  for (const entry of running.values()) entry.server?.stopNow();
});
