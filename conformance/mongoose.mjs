// An application written for Mongoose: schemas, indexes, validation, population, sessions, change of
// arrays in place. Prints one JSON line a step: [name, result]. expected-mongoose.json holds the answers.

import { createRequire } from "node:module";

const [packages, address, name] = process.argv.slice(2);
const mongoose = createRequire(`${packages}/package.json`)("mongoose");
const { Schema } = mongoose;

const point = { type: { type: String }, coordinates: { type: [Number], default: undefined } };
const userSchema = new Schema(
  {
    name: { type: String, required: true, index: true },
    email: { type: String, unique: true },
    age: { type: Number, min: 0 },
    tags: [String],
    address: { city: String, place: point },
    balance: Schema.Types.Decimal128,
    settings: { type: Map, of: String },
  },
  { timestamps: true },
).index({ "address.place": "2dsphere" });
const commentSchema = new Schema({ body: String, by: { type: Schema.Types.ObjectId, ref: "User" } });
const postSchema = new Schema(
  { title: String, author: { type: Schema.Types.ObjectId, ref: "User" }, comments: [commentSchema] },
  { optimisticConcurrency: true },
);
const User = mongoose.model("User", userSchema);
const Post = mongoose.model("Post", postSchema);

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

async function documents() {
  await User.init();
  const indexes = await User.collection.indexes();
  step("indexes of the schema", indexes.map((index) => index.name).sort());
  const ada = await User.create({
    name: "Ada",
    email: "ada@example.org",
    age: 36,
    tags: ["x", "y"],
    address: { city: "London", place: { type: "Point", coordinates: [0, 51] } },
    balance: "12.50",
    settings: { theme: "dark" },
  });
  const bob = await User.create({ name: "Bob", email: "bob@example.org", age: 20 });
  const duplicate = await refused(User.create({ name: "Eve", email: "ada@example.org" }));
  step("a duplicate of a unique field", [duplicate.code, duplicate.keyPattern, duplicate.keyValue]);
  step("a document that the schema refuses", (await refused(User.create({ email: "n@example.org" }))).name);
  const read = await User.findById(ada._id);
  step("read back", [read.balance.toString(), read.settings.get("theme"), read.createdAt instanceof Date]);
  return { ada, bob };
}

async function references({ ada, bob }) {
  const post = await Post.create({ title: "hello", author: ada._id, comments: [{ body: "first", by: bob._id }] });
  const stale = await Post.findById(post._id);
  post.comments.push({ body: "second", by: ada._id });
  await post.save();
  post.comments[0].body = "edited";
  post.title = "hi";
  await post.save();
  const populated = await Post.findOne().populate("author").populate("comments.by");
  step("populated", [populated.author.name, populated.comments.map((comment) => [comment.body, comment.by.name])]);
  stale.title = "too late";
  step("a stale save", (await refused(stale.save())).name);
  post.comments.pull(post.comments[0]._id);
  await post.save();
  step("a subdocument pulled", (await Post.findById(post._id)).comments.length);
}

async function queries({ ada, bob }) {
  const group = { _id: null, count: { $sum: 1 }, age: { $avg: "$age" } };
  step("aggregate", await User.aggregate([{ $match: { age: { $gt: 10 } } }, { $group: group }]));
  const near = { $near: { $geometry: { type: "Point", coordinates: [0, 50] }, $maxDistance: 200_000 } };
  step("near", (await User.find({ "address.place": near })).map((user) => user.name));
  const upserted = await User.findOneAndUpdate(
    { name: "Zed" },
    { $setOnInsert: { email: "zed@example.org" } },
    { upsert: true, returnDocument: "after", runValidators: true },
  );
  step("find one and update", [upserted.name, upserted.email]);
  const bulk = await User.bulkWrite([
    { insertOne: { document: { name: "Ivy", email: "ivy@example.org" } } },
    { updateOne: { filter: { name: "Ivy" }, update: { $set: { age: 3 } } } },
    { deleteOne: { filter: { name: "Ivy" } } },
  ]);
  step("bulk write", [bulk.insertedCount, bulk.modifiedCount, bulk.deletedCount]);
  const names = [];
  for await (const user of User.find().sort("name").cursor({ batchSize: 2 })) names.push(user.name);
  step("a cursor", names);
  step("distinct, exists, count", [
    await User.distinct("tags"),
    (await User.exists({ name: "Ada" }))._id.equals(ada._id),
    await User.estimatedDocumentCount(),
    await User.countDocuments({ "settings.theme": "dark" }),
  ]);
  const wrong = await refused(User.updateOne({ _id: ada._id }, { $push: { name: 1 } }));
  step("an update that can't be", [wrong.name, wrong.code]);
  step("lean, select", await User.findOne({ _id: bob._id }).select("name -_id").lean());
}

async function transactions({ bob }) {
  const session = await mongoose.startSession();
  await session.withTransaction(async () => {
    await User.updateOne({ _id: bob._id }, { $inc: { age: 1 } }).session(session);
    await Post.create([{ title: "in a transaction" }], { session });
  });
  await refused(
    mongoose.connection.transaction(async (inner) => {
      await User.deleteMany({}, { session: inner });
      throw new Error("changed my mind");
    }),
  );
  await session.endSession();
  step("transactions", [(await User.findById(bob._id)).age, await Post.countDocuments(), await User.countDocuments()]);
}

const uri = `mongodb://${address}/${name}`;
await mongoose.connect(uri, { serverSelectionTimeoutMS: 120_000 });
const people = await documents();
await references(people);
await queries(people);
await transactions(people);
step("synchronised indexes", await User.syncIndexes());
step("collections", (await mongoose.connection.listCollections()).map((it) => it.name).sort());
await mongoose.connection.dropDatabase();
await mongoose.disconnect();
