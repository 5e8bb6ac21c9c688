// The scripted session through the Node driver. Prints one JSON line a step: [name, result].

import { createRequire } from "node:module";

// The driver is installed beside the build's other products, not beside this file.
const [packages, address, name] = process.argv.slice(2);
const { MongoClient, Binary, BSONRegExp, Decimal128, Long, MaxKey, MinKey, ObjectId, Timestamp, BSON } =
  createRequire(`${packages}/package.json`)("mongodb");

const client = new MongoClient(`mongodb://${address}/`, { serverSelectionTimeoutMS: 120_000 });
const db = client.db(name);
const products = db.collection("products");

function step(title, result) {
  console.log(JSON.stringify([title, result]));
}

/** The error that a promise rejects with. */
async function refused(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("not refused");
}

const ids = (documents) => documents.map((document) => document._id);

async function crud() {
  step("ping", (await client.db("admin").command({ ping: 1 })).ok);
  const pen = { _id: 1, name: "pen", price: 2, tags: ["blue", "ink"], size: { h: 14, w: 1 } };
  step("insert one", (await products.insertOne(pen)).insertedId);
  const inserted = await products.insertMany([
    { _id: 2, name: "pencil", price: 1, tags: ["wood"], size: { h: 17, w: 1 } },
    { _id: 3, name: "paper", price: 5, tags: ["lined", "blue"], size: { h: 30, w: 21 } },
    { _id: 4, name: "ruler", price: 12.5, tags: ["wood"], size: { h: 30, w: 3 } },
    { _id: 5, name: "eraser", price: 1, tags: ["red"], size: { h: 3, w: 2 } },
  ]);
  step("insert many", Object.values(inserted.insertedIds));
  const filter = { price: { $gte: 2 }, tags: { $ne: "lined" } };
  const found = products.find(filter).project({ price: 1 }).sort({ price: -1 });
  step("find with filter, sort and projection", await found.toArray());
  step("find one by a dotted path", (await products.findOne({ "size.w": 2 }))._id);
  step("find in an array", ids(await products.find({ tags: "blue" }).sort({ _id: 1 }).toArray()));
  step("read in batches of two", ids(await products.find().batchSize(2).sort({ _id: 1 }).toArray()));
  step("skip and limit", ids(await products.find().sort({ _id: -1 }).skip(2).limit(2).toArray()));
  step("count", await products.countDocuments({ price: { $gt: 1 } }));
  step("estimated count", await products.estimatedDocumentCount());
  step("distinct", (await products.distinct("tags")).sort());
  let result = await products.updateOne({ _id: 1 }, { $inc: { price: 4 }, $set: { stock: 10 } });
  step("update one", [result.matchedCount, result.modifiedCount]);
  result = await products.updateOne({ _id: 1 }, { $set: { stock: 10 } });
  step("update one that is so already", [result.matchedCount, result.modifiedCount]);
  result = await products.updateMany({}, { $push: { tags: "shop" } });
  step("update many", [result.matchedCount, result.modifiedCount]);
  result = await products.updateOne({ _id: 6 }, { $set: { name: "glue" } }, { upsert: true });
  step("upsert", result.upsertedId);
  await products.replaceOne({ _id: 6 }, { name: "glue", price: 3 });
  step("replace one", await products.findOne({ _id: 6 }));
  const options = { returnDocument: "after", projection: { price: 1, stock: 1 } };
  const changed = await products.findOneAndUpdate({ name: "pen" }, { $inc: { price: 1 } }, options);
  step("find one and update", changed);
  step("find one and delete", (await products.findOneAndDelete({ name: "glue" }))._id);
  step("delete one", (await products.deleteOne({ _id: 5 })).deletedCount);
  result = await products.bulkWrite([
    { insertOne: { document: { _id: 7, name: "tape" } } },
    { updateOne: { filter: { _id: 7 }, update: { $set: { price: 1 } } } },
    { deleteOne: { filter: { _id: 7 } } },
  ]);
  step("bulk write", [result.insertedCount, result.modifiedCount, result.deletedCount]);
  const [namespace, other] = [`${name}.products`, `${name}.others`];
  result = await client.bulkWrite(
    [
      { name: "insertOne", namespace, document: { _id: 7, name: "tape" } },
      { name: "insertOne", namespace: other, document: { _id: 1 } },
      { name: "updateOne", namespace, filter: { _id: 7 }, update: { $set: { price: 1 } } },
      { name: "updateOne", namespace: other, filter: { _id: 8 }, update: { $set: { price: 1 } }, upsert: true },
      { name: "deleteOne", namespace, filter: { _id: 7 } },
    ],
    { verboseResults: true },
  );
  const counts = [result.insertedCount, result.matchedCount, result.modifiedCount, result.upsertedCount];
  const { upsertedId } = result.updateResults.get(3);
  step("bulk write of the client", [...counts, result.deletedCount, upsertedId]);
  await db.collection("others").drop();
}

async function indexes() {
  step("create an index", await products.createIndex({ name: 1 }, { unique: true }));
  step("list indexes", (await products.indexes()).map((index) => index.name).sort());
  let error = await refused(products.insertOne({ _id: 8, name: "pen" }));
  step("a duplicate key", [error.code, error.keyPattern ?? error.errorResponse.keyPattern, error.keyValue]);
  const documents = [{ _id: 11, name: "a" }, { _id: 12, name: "pen" }, { _id: 13, name: "b" }];
  error = await refused(products.insertMany(documents, { ordered: false }));
  const positions = error.writeErrors.map((failed) => failed.index);
  step("documents around a duplicate key", [error.result.insertedCount, positions]);
  await products.deleteMany({ _id: { $in: [11, 13] } });
  step("find by the index", ids(await products.find({ name: "pen" }).toArray()));
  const plan = (await products.find({ name: "pen" }).explain()).queryPlanner.winningPlan;
  step("explain", (plan.inputStage ?? plan).stage);
  step("validate", (await db.command({ validate: "products", full: true })).valid);
  await texts();
}

async function texts() {
  const notes = db.collection("notes");
  await notes.insertMany([
    { _id: 1, title: "Java Hut", body: "Coffee and cakes" },
    { _id: 2, title: "Coffee Shop", body: "Just coffee", language: "en" },
    { _id: 3, title: "Le café", body: "Nous avons mangé", language: "french" },
  ]);
  const key = { title: "text", body: "text" };
  step("create a text index", await notes.createIndex(key, { weights: { title: 3 } }));
  const score = { score: { $meta: "textScore" } };
  const found = notes.find({ $text: { $search: "coffee" } }).project({ _id: 1, ...score }).sort(score);
  step("search texts", (await found.toArray()).map((document) => [document._id, document.score]));
  step("search in French", ids(await notes.find({ $text: { $search: "manger", $language: "fr" } }).toArray()));
  const shown = { _id: 1, k: { $meta: "sortKey" } };
  const keyed = await notes.find({}).project(shown).sort({ title: 1 }).toArray();
  step("sort keys", keyed.map((document) => [document._id, document.k]));
  step("sort keys without a sort", (await refused(notes.find({}).project(shown).toArray())).code);
  step("a second text index", (await refused(notes.createIndex({ x: 1, y: "text" }))).code);
  await notes.drop();
}

async function pipelines() {
  const groups = products.aggregate([
    { $unwind: "$tags" },
    { $match: { tags: { $in: ["ink", "wood"] } } },
    { $group: { _id: "$tags", count: { $sum: 1 }, sum: { $sum: "$price" } } },
    { $sort: { _id: 1 } },
  ]);
  step("aggregate", await groups.toArray());
  await db.collection("makers").insertOne({ _id: "Faber", makes: 2 });
  const joined = products.aggregate([
    { $match: { _id: 2 } },
    { $lookup: { from: "makers", localField: "_id", foreignField: "makes", as: "makers" } },
    { $project: { makers: "$makers._id" } },
  ]);
  step("look up", await joined.toArray());
  const every = {
    _id: new ObjectId(),
    double: 1.5,
    text: "grün ✓",
    binary: new Binary(Buffer.from([0, 255]), 0x80),
    null: null,
    flag: true,
    date: new Date("2024-02-29T12:30:00Z"),
    long: Long.fromString("1099511627776"),
    decimal: Decimal128.fromString("0.10"),
    regex: new BSONRegExp("^a", "i"),
    timestamp: new Timestamp({ t: 5, i: 6 }),
    least: new MinKey(),
    greatest: new MaxKey(),
    nested: { list: [1, [2, { three: 3 }]] },
  };
  await products.insertOne(every);
  const raw = await products.findOne({ _id: every._id }, { raw: true });
  step("types survive", Buffer.compare(Buffer.from(raw), Buffer.from(BSON.serialize(every))) === 0);
  await products.deleteOne({ _id: every._id });
  step("collections", (await db.listCollections().toArray()).map((one) => one.name).sort());
}

async function versions() {
  const commit = await db.command({ frondCommit: 1, message: "the first", author: "Ada" });
  step("commit", [commit.commitId.length, commit.branch, commit.message, commit.author]);
  step("status", (await db.command({ frondStatus: 1 })).dirty);
  step("branch", (await db.command({ frondBranch: 1, branch: "feature" })).branch);
  const { branches } = await db.command({ frondBranch: 1 });
  step("branches", branches.map((branch) => branch.branch).sort());
  const feature = client.db(`${name}@feature`);
  const theirs = feature.collection("products");
  step("change the branch", (await theirs.updateOne({ _id: 1 }, { $set: { price: 8 } })).modifiedCount);
  step("the branch's price", (await theirs.findOne({ _id: 1 })).price);
  step("the main price", (await products.findOne({ _id: 1 })).price);
  const diff = await feature.command({ frondDiff: 1 });
  const differences = diff.collections.map((part) => {
    const { type, path, from, to } = part.modified[0].changes[0];
    const counts = [part.added.length, part.removed.length, part.modified.length];
    return [part.collection, ...counts, [type, path, from, to]];
  });
  step("diff", differences);
  await feature.command({ frondCommit: 1, message: "on feature", author: "Ada" });
  await products.updateOne({ _id: 1 }, { $inc: { stock: 1 } });
  await db.command({ frondCommit: 1, message: "on main", author: "Ada" });
  const merge = { frondMerge: 1, merge_in: "feature", message: "merge feature", author: "Ada" };
  step("merge", (await db.command(merge)).result);
  const projection = { projection: { price: 1, stock: 1 } };
  step("the merged document", await products.findOne({ _id: 1 }, projection));
  const before = client.db(`${name}@main~1`).collection("products");
  step("the version before", await before.findOne({ _id: 1 }, projection));
  const log = (await db.command({ frondLog: 1 })).commits.map((commit) => commit.message);
  step("log", log.filter((message) => message !== "on feature").slice(0, 3));
}

async function conflicts() {
  const feature = client.db(`${name}@feature`);
  await products.updateOne({ _id: 1 }, { $set: { price: 20 } });
  await db.command({ frondCommit: 1, message: "twenty", author: "Ada" });
  await feature.collection("products").updateOne({ _id: 1 }, { $set: { price: 30 } });
  await feature.command({ frondCommit: 1, message: "thirty", author: "Ada" });
  const error = await refused(db.command({ frondMerge: 1, merge_in: "feature" }));
  step("a conflict", [error.code, error.errorResponse.conflicts]);
  const [conflict] = (await db.command({ frondConflicts: 1 })).conflicts;
  const sides = [conflict.base.price, conflict.ours.price, conflict.theirs.price];
  step("the conflict", [conflict._id, conflict.paths, ...sides]);
  const resolve = { frondResolveConflict: 1, id: conflict.id, resolution: "theirs" };
  step("resolve", (await db.command(resolve)).remaining);
  step("continue the merge", (await db.command({ frondMerge: 1, continue: true, author: "Ada" })).result);
  step("the resolved price", (await products.findOne({ _id: 1 })).price);
  const old = client.db(`${name}@main~1`).collection("products");
  step("a write to an old version", (await refused(old.insertOne({}))).code);
  await products.deleteOne({ _id: 1 });
  await db.command({ frondReset: 1, hard: true });
  const restored = await products.findOne({ _id: 1 });
  step("reset", [await products.countDocuments({ _id: 1 }), restored.price]);
  step("delete the branch", (await db.command({ frondBranch: 1, branch: "feature", delete: true })).deleted);
}

async function transactions() {
  const accounts = db.collection("accounts");
  const ledger = db.collection("ledger");
  await accounts.insertMany([{ _id: "a", n: 100 }, { _id: "b", n: 100 }]);
  await db.command({ frondCommit: 1, message: "accounts", author: "Ada" });
  await db.command({ frondBranch: 1, branch: "copy" });
  const copied = client.db(`${name}@copy`).collection("accounts");
  const balance = async (collection, _id) => (await collection.findOne({ _id })).n;
  const inSession = (work, options) => client.withSession(options ?? {}, work);

  await inSession(async (session) => {
    const inside = await session.withTransaction(async () => {
      await accounts.updateOne({ _id: "a" }, { $inc: { n: -10 } }, { session });
      await copied.updateOne({ _id: "a" }, { $inc: { n: 10 } }, { session });
      await ledger.insertOne({ sum: 10 }, { session });
      return (await accounts.findOne({ _id: "a" }, { session })).n;
    });
    const balances = [await balance(accounts, "a"), await balance(copied, "a")];
    step("a transfer across collections and branches", [inside, ...balances, await ledger.countDocuments()]);

    const attempts = [];
    await session.withTransaction(async () => {
      const before = (await accounts.findOne({ _id: "b" }, { session })).n;
      attempts.push(before);
      if (attempts.length === 1) {
        await inSession((other) =>
          other.withTransaction(() => accounts.updateOne({ _id: "b" }, { $inc: { n: 5 } }, { session: other })),
        );
      }
      await accounts.updateOne({ _id: "b" }, { $set: { n: before + 1 } }, { session });
    });
    step("a conflict is retried", [attempts, await balance(accounts, "b")]);
    session.startTransaction();
    await ledger.insertOne({ sum: 0 }, { session });
    await session.abortTransaction();
    step("abort", await ledger.countDocuments());
    session.startTransaction();
    await ledger.insertOne({ sum: 1 }, { session });
    await session.commitTransaction();
    await session.commitTransaction();
    step("commit twice", await ledger.countDocuments());
    session.startTransaction();
    await ledger.findOne({}, { session });
    const error = await refused(db.command({ frondStatus: 1 }, { session }));
    step("a version command in a transaction", error.code);
    await session.abortTransaction();
  });
  // Its number is above what the driver counts: a session that isn't ended is used by nobody else.
  const session = client.startSession();
  const insert = { insert: "ledger", documents: [{ _id: "once" }], txnNumber: Long.fromNumber(1000) };
  const first = await db.command(insert, { session });
  const second = await db.command(insert, { session });
  step("an insert sent twice", [first.n, second.n, second.retriedStmtIds, await ledger.countDocuments()]);
  await inSession(async (session) => {
    await ledger.insertOne({ _id: "causal" }, { session });
    const found = await ledger.findOne({ _id: "causal" }, { session });
    step("a causal session", [found._id, session.operationTime !== undefined]);
  }, { causalConsistency: true });
  await ledger.drop();
  await accounts.drop();
  await copied.drop();
}

async function errors() {
  const error = await refused(db.command({ noSuchThing: 1 }));
  step("an unknown command", [error.code, error.codeName]);
  step("an unknown operator", (await refused(products.find({ a: { $foo: 1 } }).toArray())).code);
  step("a wrong type", (await refused(db.command({ find: "products", filter: "x" }))).code);
  step("an unknown field", (await refused(db.command({ find: "products", foo: 1 }))).code);
  const names = async () => (await client.db("admin").admin().listDatabases()).databases.map((one) => one.name);
  step("databases", (await names()).includes(name));
  await products.drop();
  step("drop the collection", (await db.listCollections().toArray()).map((one) => one.name));
  await db.dropDatabase();
  step("drop the database", (await names()).includes(name));
}

try {
  await crud();
  await indexes();
  await pipelines();
  await versions();
  await conflicts();
  await transactions();
  await errors();
} finally {
  await client.close();
}
