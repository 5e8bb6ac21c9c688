// mongodb-memory-server starts Frond as its mongod: one server, and a replica set of one member.
//
//     MONGOMS_SYSTEM_BINARY=/path/mongod node conformance/mongod.mjs
//
// (installed with its driver by mongod.py, which makes a link to frond that is called mongod).

import assert from "node:assert/strict";
import { MongoMemoryReplSet, MongoMemoryServer } from "mongodb-memory-server-core";
import { MongoClient } from "mongodb";

const server = await MongoMemoryServer.create();
const client = await MongoClient.connect(server.getUri());
const items = client.db("shop").collection("items");
await items.insertMany([{ _id: 1 }, { _id: 2 }]);
assert.equal(await items.countDocuments(), 2);
await client.close();
await server.stop();
console.log("one server: passed");

const set = await MongoMemoryReplSet.create({ replSet: { count: 1, name: "testset" } });
const member = await MongoClient.connect(set.getUri());
const accounts = member.db("bank").collection("accounts");
await accounts.insertMany([{ _id: "a", balance: 10 }, { _id: "b", balance: 0 }]);
await member.withSession((session) =>
  session.withTransaction(async () => {
    await accounts.updateOne({ _id: "a" }, { $inc: { balance: -4 } }, { session });
    await accounts.updateOne({ _id: "b" }, { $inc: { balance: 4 } }, { session });
  }),
);
const balances = await accounts.find().sort({ _id: 1 }).map((it) => it.balance).toArray();
assert.deepEqual(balances, [6, 4]);
await member.close();
await set.stop();
console.log("a replica set of one member: passed");

// Three servers are no set of three: a program that asks for one is told.
await assert.rejects(
  MongoMemoryReplSet.create({ replSet: { count: 3, name: "three" } }),
  /is a replica set of one member, not of 3/,
);
console.log("a replica set of three members: refused");
process.exit(0);
