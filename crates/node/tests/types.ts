// What the declarations allow, and what they refuse: compiled, not run.

import { MongoClient, type AggregationCursor, type Db } from "mongodb";
import { connect, open, type Change, type Client, type Commit } from "fronddb";
import { openForTests } from "fronddb/testing";

interface Item {
  _id: number;
  price: number;
}

const client: Client = await open("data", { cache: 1 << 26, appName: "types" });
const plain: MongoClient = client;
const shop = client.db("shop");
const db: Db = shop;
await shop.collection<Item>("items").insertOne({ _id: 1, price: 30 });
const commit: Commit = await shop.commit("first", { author: "Ada <ada@example.org>" });
const rows: AggregationCursor<Change> = shop.diff("main", "sale");
const [conflict] = await shop.conflicts().toArray();
const remaining: number = await shop.resolve(conflict, { resolution: "ours" });
// @ts-expect-error: a side is one of two words.
await shop.resolve({ all: true }, { resolution: "mine" });
// @ts-expect-error: a message is there.
await shop.commit();
const other = await (await connect()).db("shop").branch("sale", { expireAfterSeconds: 60 });
const database = await openForTests({ fixtures: (base) => base.collection<Item>("items").insertOne({ _id: 1, price: 1 }) });
await database.reset(await database.branch());
console.log(plain, db, commit, rows, remaining, other);
