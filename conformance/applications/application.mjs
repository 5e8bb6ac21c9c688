// The application of drivers.py with the Node driver: node application.mjs DIRECTORY URI, where the
// driver is installed in DIRECTORY.

import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(`${process.argv[2]}/package.json`);
const { GridFSBucket, MongoClient, MongoError } = require("mongodb");
const SECONDS = 3;
const FILE_BYTES = 2_000_000;
const TEXT_BYTES = 1_000_000;

const client = new MongoClient(process.argv[3]);
const database = client.db("node");
const things = database.collection("things");
const told = {};

const status = await database.admin().command({ connectionStatus: 1 });
told.user = status.authInfo.authenticatedUsers[0].user;
await readAndWrite();
await transact();
const token = await watch();
await countThroughAKill();
const stream = things.watch([], { resumeAfter: token });
const event = await stream.next();
told.resumed = [event.operationType, event.documentKey._id];
await stream.close();
await keepFile();
await compress();
console.log(JSON.stringify(told));
await client.close();
process.exit();

async function readAndWrite() {
  await things.drop();
  await things.insertMany(Array.from({ length: 500 }, (_, number) => ({ _id: number, v: number })));
  const found = await things.find({ v: { $lt: 5 } }).sort({ _id: -1 }).toArray();
  told.found = found.map(({ v }) => v);
  told.modified = (await things.updateMany({ v: { $gte: 490 } }, { $inc: { v: 1000 } })).modifiedCount;
  told.deleted = (await things.deleteOne({ _id: 499 })).deletedCount;
  told.count = await things.countDocuments();
  told.sum = (await things.aggregate([{ $group: { _id: null, sum: { $sum: "$v" } } }]).next()).sum;
}

async function transact() {
  await client.withSession(async (session) => {
    await session.withTransaction(async () => {
      await things.updateOne({ _id: 1 }, { $inc: { v: 10 } }, { session });
      await things.deleteOne({ _id: 2 }, { session });
    });
    const failed = session.withTransaction(async () => {
      await things.updateOne({ _id: 3 }, { $inc: { v: 10 } }, { session });
      throw new RangeError("taken back");
    });
    await failed.catch((error) => {
      if (!(error instanceof RangeError)) throw error;
    });
  });
  const found = await things.find({ _id: { $in: [1, 2, 3] } }).sort({ _id: 1 }).toArray();
  told.transaction = found.map(({ v }) => v);
}

async function watch() {
  const stream = things.watch();
  // The driver opens the stream when it is first asked.
  await stream.tryNext();
  await things.insertOne({ _id: "event" });
  const event = await stream.next();
  told.event = [event.operationType, event.documentKey._id];
  const token = stream.resumeToken;
  await stream.close();
  return token;
}

async function countThroughAKill() {
  console.log("kill");
  let [acknowledged, unknown] = [0, 0];
  for (const end = Date.now() + SECONDS * 1000; Date.now() < end; ) {
    try {
      const update = things.updateOne({ _id: 0 }, { $inc: { n: 1 } });
      // Where its socket ends while it writes, the driver sometimes waits for it for ever.
      if (await Promise.race([update, sleep(SECONDS * 1000)])) acknowledged += 1;
      else unknown += 1;
    } catch (error) {
      // It doesn't repeat what fails after its monitor has noticed that the server is gone, nor what
      // fails with the system's error.
      if (!(error instanceof MongoError || error.code === "EPIPE")) throw error;
      unknown += 1;
    }
  }
  told.counts = [acknowledged, (await things.findOne({ _id: 0 })).n, unknown];
}

async function keepFile() {
  const files = new GridFSBucket(database);
  const written = randomBytes(FILE_BYTES);
  const upload = files.openUploadStream("file");
  await pipeline([written], upload);
  const read = await files.openDownloadStream(upload.id).toArray();
  told.file = Buffer.concat(read).equals(written);
}

// How much of an answer that repeats itself goes over the wire.
async function compress() {
  await things.insertOne({ _id: "text", text: "x".repeat(TEXT_BYTES) });
  const traffic = async () => (await database.admin().command({ serverStatus: 1 })).network;
  const before = await traffic();
  await things.findOne({ _id: "text" });
  const after = await traffic();
  const grown = (name) => Number(after[name]) - Number(before[name]);
  told.compressed = grown("physicalBytesOut") < grown("bytesOut") / 2;
}
