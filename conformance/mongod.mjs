// mongodb-memory-server starts Frond as its mongod: one server, replica sets of one member and of three.
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

// Three servers that hold nothing become a set of three, which has logins and is there again after
// a restart.
const three = await MongoMemoryReplSet.create({
  replSet: { count: 3, name: "three", storageEngine: "wiredTiger", auth: { enable: true, customRootName: "ann", customRootPwd: "secret" } },
});
const login = { auth: { username: "ann", password: "secret" }, authSource: "admin" };
for (const round of [1, 2]) {
  const clients = await MongoClient.connect(three.getUri(), { ...login, w: "majority" });
  const { hosts, setName } = await clients.db("admin").command({ hello: 1 });
  assert.deepEqual([hosts.length, setName], [3, "three"]);
  await clients.db("shop").collection("items").insertOne({ _id: round });
  assert.equal(await clients.db("shop").collection("items").countDocuments(), round);
  await clients.close();
  const stranger = await MongoClient.connect(three.getUri());
  await assert.rejects(stranger.db("shop").collection("items").insertOne({}), { codeName: "Unauthorized" });
  await stranger.close();
  await three.stop({ doCleanup: round === 2 });
  if (round === 1) await three.start();
}
console.log("a replica set of three members: passed");

// What a server holds the others would lack: one that is in a set stays there, with what it has.
const servers = await Promise.all([1, 2, 3].map(() => MongoMemoryServer.create({ instance: { replSet: "full", args: [] } })));
const [alone, ...others] = await Promise.all(servers.map((it) => MongoClient.connect(it.getUri(), { directConnection: true })));
await others[1].db("admin").command({ replSetInitiate: {} });
await others[1].db("shop").collection("items").insertOne({ _id: 1 });
const members = servers.map((it, at) => ({ _id: at, host: `127.0.0.1:${it.instanceInfo.port}` }));
await assert.rejects(
  alone.db("admin").command({ replSetInitiate: { _id: "full", members } }),
  /failed with already initialized/,
);
assert.equal((await alone.db("admin").command({ hello: 1 })).isreplicaset, true);
assert.equal(await others[1].db("shop").collection("items").countDocuments(), 1);
for (const it of [alone, ...others]) await it.close();
for (const it of servers) await it.stop();
console.log("a server that is in a set: refused");
process.exit(0);
