// Opening a directory: here, again, from other processes and threads, and after a process was killed.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readdirSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { DirectoryInUse, open } from "fronddb";

import { begin, count, dataFor, printed, run } from "./directory.mjs";

const ITEM = { _id: 1, price: 30 };

test("data are there when it is opened again", async (t) => {
  const data = dataFor(t);
  const first = await open(data);
  await first.db("shop").collection("items").insertOne(ITEM);
  await first.close();
  const second = await open(data);
  assert.deepEqual(await second.db("shop").collection("items").findOne(), ITEM);
  await second.close();
});

test("a directory that is opened twice is served once", async (t) => {
  const data = dataFor(t);
  const [first, second] = await Promise.all([open(data), open(join(data, "..", "data"))]);
  await first.db("shop").collection("items").insertOne(ITEM);
  await first.close();
  await first.close();
  assert.equal(await count(second), 1);
  await second.close();
  const third = await open(data);
  assert.equal(await count(third), 1);
  await third.close();
});

test("only this user may connect, and no address is listened on", async (t) => {
  const data = dataFor(t);
  const before = listening();
  const client = await open(data);
  const socket = readFileSync(join(data, "SOCKET"), "utf8").split("\n")[0];
  assert.equal(statSync(socket).mode & 0o777, 0o600);
  assert.equal(statSync(dirname(socket)).mode & 0o777, 0o700);
  assert.equal(listening(), before);
  await client.close();
  assert.ok(!existsSync(dirname(socket)));
  assert.ok(!existsSync(join(data, "SOCKET")));
});

/** How many addresses this process listens on. */
function listening() {
  const own = new Set();
  for (const descriptor of readdirSync("/proc/self/fd")) {
    try {
      own.add(readlinkSync(`/proc/self/fd/${descriptor}`));
    } catch {
      // The directory's own, closed by now.
    }
  }
  const tables = ["tcp", "tcp6"].flatMap((name) => readFileSync(`/proc/self/net/${name}`, "utf8").trim().split("\n").slice(1));
  const rows = tables.map((line) => line.trim().split(/\s+/));
  return rows.filter((fields) => fields[3] === "0A" && own.has(`socket:[${fields[9]}]`)).length;
}

test("another process reaches the data through the one that has them", async (t) => {
  const data = dataFor(t);
  const client = await open(data);
  await client.db("shop").collection("items").insertOne(ITEM);
  const program = `
    import { open } from "fronddb";
    const client = await open(process.argv[1]);
    await client.db("shop").collection("items").insertOne({ _id: "theirs" });
    await client.db("shop").commit("theirs");
    await client.close();`;
  assert.equal((await run(program, data)).ended, 0);
  assert.equal(await count(client), 2);
  assert.deepEqual((await client.db("shop").log()).map((it) => it.message), ["theirs"]);
  await client.close();
});

test("another thread does, too", async (t) => {
  const data = dataFor(t);
  const client = await open(data);
  const program = `
    import { workerData } from "node:worker_threads";
    import { open } from "fronddb";
    const client = await open(workerData);
    await client.db("shop").collection("items").insertOne({ _id: "the thread's" });
    await client.close();`;
  // A module by URL has no packages: the file beside this one says where it is.
  const url = new URL(`thread-${process.pid}.mjs`, import.meta.url);
  writeFileSync(url, program);
  const [code] = await once(new Worker(url, { workerData: data }), "exit");
  assert.equal(code, 0);
  assert.equal(await count(client), 1);
  await client.close();
});

test("what was acknowledged survives a kill, and many may open at once then", async (t) => {
  const data = dataFor(t);
  const killed = `
    import { open } from "fronddb";
    const client = await open(process.argv[1]);
    for (let number = 0; number < 100; number += 1) {
      await client.db("shop").collection("items").insertOne({ _id: number });
    }
    process.kill(process.pid, "SIGKILL");`;
  assert.equal((await run(killed, data)).ended, "SIGKILL");
  const left = readFileSync(join(data, "SOCKET"), "utf8").split("\n")[0];
  assert.ok(existsSync(left));
  const program = `
    import { open } from "fronddb";
    const client = await open(process.argv[1]);
    await client.db("shop").collection("items").insertOne({});
    console.log("open");
    process.stdin.resume().on("end", () => process.exit(0));`;
  const opened = [1, 2, 3].map(() => begin(program, data));
  await Promise.all(opened.map((child) => printed(child, "open")));
  assert.ok(!existsSync(dirname(left)));
  const client = await open(data);
  assert.equal(await count(client), 103);
  await client.close();
  await Promise.all(opened.map((child) => (child.stdin.end(), once(child, "exit"))));
});

test("a process that doesn't close leaves nothing", async (t) => {
  const data = dataFor(t);
  const program = `
    import { readFileSync } from "node:fs";
    import { open } from "fronddb";
    const client = await open(process.argv[1]);
    await client.db("shop").collection("items").insertOne({ _id: 1 });
    console.log(readFileSync(process.argv[1] + "/SOCKET", "utf8").split("\\n")[0]);
    process.exit(0);`;
  const { ended, printed: socket } = await run(program, data);
  assert.equal(ended, 0);
  assert.ok(!existsSync(dirname(socket.trim())));
  assert.ok(!existsSync(join(data, "SOCKET")));
});

test("a directory that nothing leads to is in use", async (t) => {
  const data = dataFor(t);
  const holder = begin(
    `
    import { rmSync } from "node:fs";
    import { open } from "fronddb";
    await open(process.argv[1]);
    rmSync(process.argv[1] + "/SOCKET");
    console.log("alone");`,
    data,
  );
  await printed(holder, "alone");
  await assert.rejects(open(data), DirectoryInUse);
  holder.kill("SIGKILL");
  await once(holder, "exit");
  const client = await open(data);
  await client.close();
});

test("a directory of something else is left alone", async (t) => {
  const data = dataFor(t);
  mkdirSync(data);
  writeFileSync(join(data, "mine.txt"), "mine");
  await assert.rejects(open(data), /not empty \(it holds mine.txt/);
  assert.deepEqual(readdirSync(data), ["mine.txt"]);
});

test("a file is no data directory", async (t) => {
  const data = dataFor(t);
  writeFileSync(data, "not a directory");
  await assert.rejects(open(data), /data/);
});
