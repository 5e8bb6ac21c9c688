// Commit, branch, diff, merge, log: each as a method of a database.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { MergeConflicts } from "fronddb";
import { openForTests } from "fronddb/testing";

let database;
let shop;

before(async () => {
  database = await openForTests();
});

after(() => database.close());

beforeEach(async (t) => {
  shop = database.client.db(`shop_${t.name.replaceAll(/\W/g, "_").slice(0, 40)}`);
  await shop.collection("items").insertMany([1, 2, 3].map((number) => ({ _id: number, price: 10 * number })));
  await shop.commit("first items", { author: "Ada <ada@example.org>" });
});

/** Both sides change the price of item 1. */
async function inConflict() {
  const theirs = await shop.branch("theirs");
  await theirs.collection("items").updateOne({ _id: 1 }, { $set: { price: 11 } });
  await theirs.commit("theirs");
  await shop.collection("items").updateOne({ _id: 1 }, { $set: { price: 12 } });
  await shop.commit("ours");
  await assert.rejects(shop.merge("theirs"), (error) => {
    assert.ok(error instanceof MergeConflicts);
    assert.match(error.message, /1 in items/);
    return true;
  });
}

test("the walkthrough", async () => {
  const sale = await shop.branch("sale");
  assert.deepEqual([shop.branchName, sale.branchName], [null, "sale"]);
  await sale.collection("items").updateMany({ _id: { $gt: 1 } }, { $mul: { price: 2 } });
  const commit = await sale.commit("twice");
  const rows = await shop.diff("main", "sale").toArray();
  assert.deepEqual(rows.map((row) => [row._id, row.change]), [[2, "modified"], [3, "modified"]]);
  assert.deepEqual(rows[0].changes, [{ type: "modified", path: "price", from: 20, to: 40 }]);
  assert.equal((await shop.merge("sale")).result, "fastForward");
  assert.deepEqual((await shop.log()).map((it) => it.message), ["twice", "first items"]);
  assert.equal((await shop.log("main", { limit: 1 }))[0].commitId, commit.commitId);
  assert.equal((await shop.collection("items").findOne({ _id: 3 })).price, 60);
  const past = shop.at("main~1");
  assert.equal((await past.collection("items").findOne({ _id: 3 })).price, 30);
  await assert.rejects(past.collection("items").insertOne({ _id: 9 }));
  await shop.deleteBranch("sale");
  assert.deepEqual((await shop.branches()).map((it) => it.branch), ["main"]);
});

test("uncommitted changes are the default difference", async () => {
  assert.deepEqual(await shop.diff().toArray(), []);
  await shop.collection("items").deleteOne({ _id: 1 });
  await shop.collection("items").insertOne({ _id: 4, price: 1 });
  const rows = await shop.diff().toArray();
  assert.deepEqual(rows.map((row) => [row._id, row.change]), [[1, "removed"], [4, "added"]]);
  assert.ok((await shop.status()).dirty);
  await shop.reset("HEAD", { hard: true });
  assert.ok(!(await shop.status()).dirty);
});

test("a conflict is thrown and decided", async () => {
  await inConflict();
  const [conflict, ...others] = await shop.conflicts().toArray();
  assert.deepEqual([others.length, conflict.collection, conflict._id, conflict.paths], [0, "items", 1, ["price"]]);
  const prices = [conflict.base, conflict.ours, conflict.theirs].map((side) => side.price);
  assert.deepEqual(prices, [10, 12, 11]);
  assert.equal(await shop.resolve(conflict, { update: { $set: { price: 13 } } }), 0);
  assert.equal((await shop.mergeContinue({ message: "both" })).result, "merged");
  assert.equal((await shop.collection("items").findOne({ _id: 1 })).price, 13);
  assert.equal((await shop.log("main", { limit: 1 }))[0].parents.length, 2);
});

test("a conflict is decided by removing the document", async () => {
  await inConflict();
  assert.equal(await shop.resolve({ all: true }, { value: null }), 0);
  await shop.mergeContinue();
  assert.equal(await shop.collection("items").findOne({ _id: 1 }), null);
});

test("a merge that waits is aborted", async () => {
  await inConflict();
  assert.equal((await shop.mergeAbort()).result, "aborted");
  assert.equal((await shop.collection("items").findOne({ _id: 1 })).price, 12);
});

test("other failures of a merge are the driver's errors", async () => {
  await assert.rejects(shop.merge("no such branch"), (error) => error.code === 2);
});

test("names that drivers refuse are reached", async () => {
  for (const name of ["v1.0", "agent/fix", "größer"]) {
    const branch = await shop.branch(name);
    assert.equal(branch.branchName, name);
    await branch.collection("items").insertOne({ _id: "here" });
    assert.equal(await shop.checkout(name).collection("items").countDocuments(), 4);
  }
  assert.equal(await shop.collection("items").countDocuments(), 3);
});

test("history, blame, tag and undo", async () => {
  await shop.collection("items").updateOne({ _id: 1 }, { $set: { price: 33 } });
  await shop.commit("dearer");
  const versions = await shop.history("items", 1);
  assert.deepEqual(versions.map((it) => it.document.price), [33, 10]);
  const price = (await shop.blame("items", 1)).find((it) => it.path === "price");
  assert.equal(price.message, "dearer");
  await shop.tag("v1");
  await shop.undo();
  assert.deepEqual((await shop.log()).map((it) => it.message), ["first items"]);
});

test("what the driver has works on a version", async () => {
  const sale = await shop.branch("sale");
  const session = database.client.startSession();
  await session.withTransaction(async () => {
    await sale.collection("items").insertOne({ _id: 4 }, { session });
    await sale.collection("items").deleteOne({ _id: 1 }, { session });
  });
  await session.endSession();
  const groups = sale.collection("items").aggregate([{ $group: { _id: null, ids: { $sum: "$_id" } } }]);
  assert.deepEqual(await groups.toArray(), [{ _id: null, ids: 9 }]);
});
