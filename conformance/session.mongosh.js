// The scripted session through mongosh, whose calls wait by themselves. Prints one JSON line a step:
// [name, result]. The database's name comes in the environment.

const name = process.env.FROND_DATABASE;
db = db.getSiblingDB(name);
const products = db.products;

function step(title, result) {
  print(JSON.stringify([title, result]));
}

/** The error that a call throws. */
function refused(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("not refused");
}

/** Numbers as JSON has them, whatever the shell made of them. */
const number = (value) => Number(value);
const ids = (documents) => documents.map((document) => document._id);

function crud() {
  step("ping", db.adminCommand({ ping: 1 }).ok);
  const pen = { _id: 1, name: "pen", price: 2, tags: ["blue", "ink"], size: { h: 14, w: 1 } };
  step("insert one", products.insertOne(pen).insertedId);
  const inserted = products.insertMany([
    { _id: 2, name: "pencil", price: 1, tags: ["wood"], size: { h: 17, w: 1 } },
    { _id: 3, name: "paper", price: 5, tags: ["lined", "blue"], size: { h: 30, w: 21 } },
    { _id: 4, name: "ruler", price: 12.5, tags: ["wood"], size: { h: 30, w: 3 } },
    { _id: 5, name: "eraser", price: 1, tags: ["red"], size: { h: 3, w: 2 } },
  ]);
  step("insert many", Object.values(inserted.insertedIds));
  const filter = { price: { $gte: 2 }, tags: { $ne: "lined" } };
  step("find with filter, sort and projection", products.find(filter, { price: 1 }).sort({ price: -1 }).toArray());
  step("find one by a dotted path", products.findOne({ "size.w": 2 })._id);
  step("find in an array", ids(products.find({ tags: "blue" }).sort({ _id: 1 }).toArray()));
  step("read in batches of two", ids(products.find().batchSize(2).sort({ _id: 1 }).toArray()));
  step("skip and limit", ids(products.find().sort({ _id: -1 }).skip(2).limit(2).toArray()));
  step("count", products.countDocuments({ price: { $gt: 1 } }));
  step("estimated count", products.estimatedDocumentCount());
  step("distinct", products.distinct("tags").sort());
  let result = products.updateOne({ _id: 1 }, { $inc: { price: 4 }, $set: { stock: 10 } });
  step("update one", [result.matchedCount, result.modifiedCount]);
  result = products.updateOne({ _id: 1 }, { $set: { stock: 10 } });
  step("update one that is so already", [result.matchedCount, result.modifiedCount]);
  result = products.updateMany({}, { $push: { tags: "shop" } });
  step("update many", [result.matchedCount, result.modifiedCount]);
  step("upsert", products.updateOne({ _id: 6 }, { $set: { name: "glue" } }, { upsert: true }).insertedId);
  products.replaceOne({ _id: 6 }, { name: "glue", price: 3 });
  step("replace one", products.findOne({ _id: 6 }));
  const options = { returnNewDocument: true, projection: { price: 1, stock: 1 } };
  step("find one and update", products.findOneAndUpdate({ name: "pen" }, { $inc: { price: 1 } }, options));
  step("find one and delete", products.findOneAndDelete({ name: "glue" })._id);
  step("delete one", products.deleteOne({ _id: 5 }).deletedCount);
  result = products.bulkWrite([
    { insertOne: { document: { _id: 7, name: "tape" } } },
    { updateOne: { filter: { _id: 7 }, update: { $set: { price: 1 } } } },
    { deleteOne: { filter: { _id: 7 } } },
  ]);
  step("bulk write", [result.insertedCount, result.modifiedCount, result.deletedCount]);
  const [namespace, other] = [`${db.getName()}.products`, `${db.getName()}.others`];
  result = db.getMongo().bulkWrite(
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
  db.others.drop();
}

function indexes() {
  step("create an index", products.createIndex({ name: 1 }, { unique: true }));
  step("list indexes", products.getIndexes().map((index) => index.name).sort());
  let error = refused(() => products.insertOne({ _id: 8, name: "pen" }));
  step("a duplicate key", [error.code, error.errorResponse.keyPattern, error.errorResponse.keyValue]);
  const documents = [{ _id: 11, name: "a" }, { _id: 12, name: "pen" }, { _id: 13, name: "b" }];
  error = refused(() => products.insertMany(documents, { ordered: false }));
  step("documents around a duplicate key", [error.result.insertedCount, error.writeErrors.map((failed) => failed.err.index)]);
  products.deleteMany({ _id: { $in: [11, 13] } });
  step("find by the index", ids(products.find({ name: "pen" }).toArray()));
  const plan = products.find({ name: "pen" }).explain().queryPlanner.winningPlan;
  step("explain", (plan.inputStage ?? plan).stage);
  step("validate", products.validate(true).valid);
  texts();
}

function texts() {
  const notes = db.getCollection("notes");
  notes.insertMany([
    { _id: 1, title: "Java Hut", body: "Coffee and cakes" },
    { _id: 2, title: "Coffee Shop", body: "Just coffee", language: "en" },
    { _id: 3, title: "Le café", body: "Nous avons mangé", language: "french" },
  ]);
  const key = { title: "text", body: "text" };
  step("create a text index", notes.createIndex(key, { weights: { title: 3 } }));
  const score = { score: { $meta: "textScore" } };
  const found = notes.find({ $text: { $search: "coffee" } }, { _id: 1, ...score }).sort(score);
  step("search texts", found.toArray().map((document) => [document._id, document.score]));
  step("search in French", ids(notes.find({ $text: { $search: "manger", $language: "fr" } }).toArray()));
  const shown = { _id: 1, k: { $meta: "sortKey" } };
  const keyed = notes.find({}, shown).sort({ title: 1 }).toArray();
  step("sort keys", keyed.map((document) => [document._id, document.k]));
  step("sort keys without a sort", refused(() => notes.find({}, shown).toArray()).code);
  step("a second text index", refused(() => notes.createIndex({ x: 1, y: "text" })).code);
  notes.drop();
}

function pipelines() {
  const groups = products.aggregate([
    { $unwind: "$tags" },
    { $match: { tags: { $in: ["ink", "wood"] } } },
    { $group: { _id: "$tags", count: { $sum: 1 }, sum: { $sum: "$price" } } },
    { $sort: { _id: 1 } },
  ]);
  step("aggregate", groups.toArray());
  db.makers.insertOne({ _id: "Faber", makes: 2 });
  const joined = products.aggregate([
    { $match: { _id: 2 } },
    { $lookup: { from: "makers", localField: "_id", foreignField: "makes", as: "makers" } },
    { $project: { makers: "$makers._id" } },
  ]);
  step("look up", joined.toArray());
  const every = {
    _id: ObjectId(),
    double: 1.5,
    text: "grün ✓",
    binary: new Binary(Buffer.from([0, 255]), 0x80),
    null: null,
    flag: true,
    date: ISODate("2024-02-29T12:30:00Z"),
    long: NumberLong("1099511627776"),
    decimal: NumberDecimal("0.10"),
    regex: /^a/i,
    timestamp: Timestamp({ t: 5, i: 6 }),
    least: MinKey(),
    greatest: MaxKey(),
    nested: { list: [1, [2, { three: 3 }]] },
  };
  products.insertOne(every);
  step("types survive", EJSON.stringify(products.findOne({ _id: every._id })) === EJSON.stringify(every));
  products.deleteOne({ _id: every._id });
  step("collections", db.getCollectionNames().sort());
}

function versions() {
  const commit = db.runCommand({ frondCommit: 1, message: "the first", author: "Ada" });
  step("commit", [commit.commitId.length, commit.branch, commit.message, commit.author]);
  step("status", db.runCommand({ frondStatus: 1 }).dirty);
  step("branch", db.runCommand({ frondBranch: 1, branch: "feature" }).branch);
  step("branches", db.runCommand({ frondBranch: 1 }).branches.map((branch) => branch.branch).sort());
  const feature = db.getSiblingDB(`${name}@feature`);
  step("change the branch", feature.products.updateOne({ _id: 1 }, { $set: { price: 8 } }).modifiedCount);
  step("the branch's price", feature.products.findOne({ _id: 1 }).price);
  step("the main price", products.findOne({ _id: 1 }).price);
  const differences = feature.runCommand({ frondDiff: 1 }).collections.map((part) => {
    const { type, path, from, to } = part.modified[0].changes[0];
    const counts = [part.added.length, part.removed.length, part.modified.length];
    return [part.collection, ...counts, [type, path, from, to]];
  });
  step("diff", differences);
  feature.runCommand({ frondCommit: 1, message: "on feature", author: "Ada" });
  products.updateOne({ _id: 1 }, { $inc: { stock: 1 } });
  db.runCommand({ frondCommit: 1, message: "on main", author: "Ada" });
  const merge = { frondMerge: 1, merge_in: "feature", message: "merge feature", author: "Ada" };
  step("merge", db.runCommand(merge).result);
  step("the merged document", products.findOne({ _id: 1 }, { price: 1, stock: 1 }));
  const before = db.getSiblingDB(`${name}@main~1`).products;
  step("the version before", before.findOne({ _id: 1 }, { price: 1, stock: 1 }));
  const log = db.runCommand({ frondLog: 1 }).commits.map((commit) => commit.message);
  step("log", log.filter((message) => message !== "on feature").slice(0, 3));
}

function conflicts() {
  const feature = db.getSiblingDB(`${name}@feature`);
  products.updateOne({ _id: 1 }, { $set: { price: 20 } });
  db.runCommand({ frondCommit: 1, message: "twenty", author: "Ada" });
  feature.products.updateOne({ _id: 1 }, { $set: { price: 30 } });
  feature.runCommand({ frondCommit: 1, message: "thirty", author: "Ada" });
  const error = refused(() => db.runCommand({ frondMerge: 1, merge_in: "feature" }));
  step("a conflict", [error.code, error.errorResponse.conflicts]);
  const [conflict] = db.runCommand({ frondConflicts: 1 }).conflicts;
  const sides = [conflict.base.price, conflict.ours.price, conflict.theirs.price];
  step("the conflict", [conflict._id, conflict.paths, ...sides]);
  const resolve = { frondResolveConflict: 1, id: conflict.id, resolution: "theirs" };
  step("resolve", db.runCommand(resolve).remaining);
  step("continue the merge", db.runCommand({ frondMerge: 1, continue: true, author: "Ada" }).result);
  step("the resolved price", products.findOne({ _id: 1 }).price);
  const old = db.getSiblingDB(`${name}@main~1`).products;
  step("a write to an old version", refused(() => old.insertOne({})).code);
  products.deleteOne({ _id: 1 });
  db.runCommand({ frondReset: 1, hard: true });
  step("reset", [products.countDocuments({ _id: 1 }), products.findOne({ _id: 1 }).price]);
  step("delete the branch", db.runCommand({ frondBranch: 1, branch: "feature", delete: true }).deleted);
}

function transactions() {
  db.accounts.insertMany([{ _id: "a", n: 100 }, { _id: "b", n: 100 }]);
  db.runCommand({ frondCommit: 1, message: "accounts", author: "Ada" });
  db.runCommand({ frondBranch: 1, branch: "copy" });
  const name = db.getName();
  const copied = db.getSiblingDB(`${name}@copy`).accounts;
  const session = db.getMongo().startSession();
  const main = session.getDatabase(name);
  const copy = session.getDatabase(`${name}@copy`);

  session.startTransaction();
  main.accounts.updateOne({ _id: "a" }, { $inc: { n: -10 } });
  copy.accounts.updateOne({ _id: "a" }, { $inc: { n: 10 } });
  main.ledger.insertOne({ sum: 10 });
  const inside = main.accounts.findOne({ _id: "a" }).n;
  session.commitTransaction();
  const balances = [db.accounts.findOne({ _id: "a" }).n, copied.findOne({ _id: "a" }).n];
  step("a transfer across collections and branches", [inside, ...balances, db.ledger.countDocuments()]);

  // The shell's sessions leave retrying to the script.
  const attempts = [];
  for (let done = false; !done; ) {
    session.startTransaction();
    try {
      const before = main.accounts.findOne({ _id: "b" }).n;
      attempts.push(before);
      if (attempts.length === 1) {
        db.accounts.updateOne({ _id: "b" }, { $inc: { n: 5 } });
      }
      main.accounts.updateOne({ _id: "b" }, { $set: { n: before + 1 } });
      session.commitTransaction();
      done = true;
    } catch (error) {
      if (!error.hasErrorLabel("TransientTransactionError")) {
        throw error;
      }
      session.abortTransaction();
    }
  }
  step("a conflict is retried", [attempts, db.accounts.findOne({ _id: "b" }).n]);
  session.startTransaction();
  main.ledger.insertOne({ sum: 0 });
  session.abortTransaction();
  step("abort", db.ledger.countDocuments());
  session.startTransaction();
  main.ledger.insertOne({ sum: 1 });
  session.commitTransaction();
  session.commitTransaction();
  step("commit twice", db.ledger.countDocuments());
  session.startTransaction();
  main.ledger.findOne();
  step("a version command in a transaction", refused(() => main.runCommand({ frondStatus: 1 })).code);
  session.abortTransaction();
  session.endSession();

  // Its number is above what the driver counts: a session that isn't ended is used by nobody else.
  const again = db.getMongo().startSession();
  const insert = { insert: "ledger", documents: [{ _id: "once" }], txnNumber: NumberLong("1000") };
  const answers = [1, 2].map(() => again.getDatabase(name).runCommand(insert));
  const counts = answers.map((answer) => answer.n);
  step("an insert sent twice", [...counts, answers[1].retriedStmtIds, db.ledger.countDocuments()]);
  const causal = db.getMongo().startSession({ causalConsistency: true });
  causal.getDatabase(name).ledger.insertOne({ _id: "causal" });
  const found = causal.getDatabase(name).ledger.findOne({ _id: "causal" });
  step("a causal session", [found._id, causal.getOperationTime() !== undefined]);
  causal.endSession();
  db.ledger.drop();
  db.accounts.drop();
  copied.drop();
}

function errors() {
  const error = refused(() => db.runCommand({ noSuchThing: 1 }));
  step("an unknown command", [error.code, error.codeName]);
  step("an unknown operator", refused(() => products.find({ a: { $foo: 1 } }).toArray()).code);
  step("a wrong type", refused(() => db.runCommand({ find: "products", filter: "x" })).code);
  step("an unknown field", refused(() => db.runCommand({ find: "products", foo: 1 })).code);
  const names = () => db.adminCommand({ listDatabases: 1 }).databases.map((one) => one.name);
  step("databases", names().includes(name));
  products.drop();
  step("drop the collection", db.getCollectionNames());
  db.dropDatabase();
  step("drop the database", names().includes(name));
}

crud();
indexes();
pipelines();
versions();
conflicts();
transactions();
errors();
