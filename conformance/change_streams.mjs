// Watches a collection with the Node driver, over a kill of the server in between.
//
//     node conformance/change_streams.mjs MODULES target/release/frond
//
// MODULES is the folder whose node_modules has the driver.
//
// Goal: `watch()` gives each insertion once and in order, resumed by the driver itself when the
// server is killed and started again on the same address.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";

const [modules, frond] = process.argv.slice(2);
const { MongoClient } = createRequire(join(modules, "package.json"))("mongodb");
const data = mkdtempSync(join(tmpdir(), "frond-node-streams-"));
const listener = createServer().listen(0, "127.0.0.1");
await once(listener, "listening");
const port = listener.address().port;
listener.close();

const serve = async () => {
  const child = spawn(frond, ["serve", "--data", data, "--listen", `127.0.0.1:${port}`]);
  child.stderr.resume();
  await once(child.stdout, "data");
  child.stdout.resume();
  return child;
};

let server = await serve();
const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`);
await client.connect();
const things = client.db("shop").collection("things");
const stream = things.watch([{ $match: { operationType: "insert" } }], { maxAwaitTimeMS: 200 });
const seen = [];
stream.on("change", (event) => seen.push(event.fullDocument._id));
stream.on("error", (error) => fail(`the stream ended: ${error}`));
await once(stream, "resumeTokenChanged");

const COUNT = 60;
for (let number = 0; number < COUNT; number++) {
  await things.insertOne({ _id: number });
  if (number === 20) {
    server.kill("SIGKILL");
    await once(server, "exit");
    server = await serve();
  }
}
for (let waited = 0; seen.length < COUNT && waited < 30_000; waited += 50) {
  await new Promise((done) => setTimeout(done, 50));
}
const expected = [...Array(COUNT).keys()];
if (JSON.stringify(seen) !== JSON.stringify(expected)) fail(`seen: ${seen}`);
console.log(`right: ${seen.length} events over a kill`);
end(0);

function fail(message) {
  console.log(message);
  end(1);
}

function end(code) {
  server.kill("SIGTERM");
  rmSync(data, { recursive: true, force: true });
  process.exit(code);
}
