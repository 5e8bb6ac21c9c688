// One more driver over fail-overs: Node's, beside the writers of replica_set.py, which starts it.
//
//     node conformance/applications/fail_over/fail_over.mjs MODULES URI SECONDS
//
// MODULES is the folder whose node_modules has the driver.
//
// Goal: what an unmodified driver was told to be written by w: "majority" is there once, money that
// transactions move stays, and a causal session reads its own writes on secondaries too.

import { join } from "node:path";
import { createRequire } from "node:module";

const LANES = 4;
const LIST_LENGTH = 32;
const ACCOUNTS = ["a", "b", "c", "d"];
const MONEY = 100;

const [modules, uri, seconds] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const { MongoClient } = require("mongodb");
const client = new MongoClient(uri, {
  w: "majority",
  connectTimeoutMS: 2_000,
  socketTimeoutMS: 5_000,
  serverSelectionTimeoutMS: 120_000,
});
const bank = client.db("node");
const [documents, lists, accounts] = ["documents", "lists", "accounts"].map((it) => bank.collection(it));
await accounts.insertMany(ACCOUNTS.map((_id) => ({ _id, money: MONEY })));

const told = { inserts: [], appends: [], moves: 0, reads: 0, unknown: 0 };
const end = Date.now() + Number(seconds) * 1_000;

async function move(one, other) {
  const options = { readConcern: { level: "snapshot" }, writeConcern: { w: "majority" } };
  await client.withSession((session) =>
    session.withTransaction(async () => {
      await accounts.updateOne({ _id: one }, { $inc: { money: -1 } }, { session });
      await accounts.updateOne({ _id: other }, { $inc: { money: 1 } }, { session });
    }, options),
  );
  told.moves += 1;
}

async function readOwnWrite(_id, number) {
  await client.withSession(async (session) => {
    await documents.updateOne({ _id }, { $set: { number } }, { session });
    const options = { session, readPreference: "secondaryPreferred" };
    const read = await documents.findOne({ _id }, options);
    if (read?.number !== number) throw new Error(`its own write isn't read: ${JSON.stringify(read)}`);
    told.reads += 1;
  });
}

async function step(lane, number) {
  const _id = `${lane}-${number}`;
  await documents.insertOne({ _id });
  told.inserts.push(_id);
  const list = `${lane}-${Math.floor(number / LIST_LENGTH)}`;
  await lists.updateOne({ _id: list }, { $push: { numbers: number } }, { upsert: true });
  told.appends.push([list, number]);
  await move(ACCOUNTS[number % ACCOUNTS.length], ACCOUNTS[(number + 1) % ACCOUNTS.length]);
  await readOwnWrite(_id, number);
}

async function run(lane) {
  for (let number = 0; Date.now() < end; number += 1) {
    try {
      await step(lane, number);
    } catch (error) {
      if (error.code === 11000 || error.message.includes("its own write")) throw error;
      // What became of it isn't known. The driver doesn't repeat what failed after its monitor had
      // noticed that the server is gone.
      told.unknown += 1;
    }
  }
}

await Promise.all(Array.from({ length: LANES }, (_, lane) => run(lane)));
const there = new Set((await documents.find().toArray()).map(({ _id }) => _id));
const numbers = new Map((await lists.find().toArray()).map((it) => [it._id, it.numbers]));
const counts = told.appends.map(([list, number]) => (numbers.get(list) ?? []).filter((it) => it === number).length);
const lost = told.inserts.filter((_id) => !there.has(_id)).length + counts.filter((count) => count === 0).length;
const twice = counts.filter((count) => count > 1).length;
const money = (await accounts.find().toArray()).reduce((sum, account) => sum + account.money, 0);
await client.close();
const { inserts, appends, moves, reads, unknown } = told;
console.log(
  `Node's driver ${require("mongodb/package.json").version}: ${inserts.length} inserts, ${appends.length} appends, ` +
    `${moves} transactions, ${reads} causal reads: ${lost} lost, ${twice} twice, ` +
    `${money} of ${ACCOUNTS.length * MONEY} money; ${unknown} not known`,
);
process.exitCode = lost + twice === 0 && money === ACCOUNTS.length * MONEY ? 0 : 1;
