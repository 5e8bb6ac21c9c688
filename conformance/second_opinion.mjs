// A second opinion: filters, expressions, updates and pipelines over generated documents, asked of a running
// Frond (by the Node driver) and of mingo, which we didn't write. Prints each difference; ends with 1 if there is
// one. mingo isn't an authority: where the two differ the manual decides, and where it is mingo that errs, the
// case stands in KNOWN with what the manual says.
//
//     node second_opinion.mjs PACKAGES ADDRESS [SEED [ROUNDS]]

import { createRequire } from "node:module";

const [packages, address, seedText = "1", roundsText = "300"] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const { MongoClient } = load("mongodb");
const mingo = load("mingo");

/** A generator of numbers from a seed: mulberry32. */
function randomOf(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return {
    below: (limit) => Math.floor(next() * limit),
    one: (list) => list[Math.floor(next() * list.length)],
    chance: (share) => next() < share,
  };
}

let random;
const NUMBERS = [0, 1, 2, 3, 5, 7, 10, -1, -3, 0.5, 2.5, -1.25, 100];
const STRINGS = ["", "a", "b", "ab", "abc", "Hello World", "  pad ", "1", "z,y,x", "日本"];
const DATES = ["2024-02-29T12:34:56.789Z", "1999-12-31T23:59:59.999Z", "2026-07-01T00:00:00.000Z"];
const date = () => new Date(random.one(DATES));

const makers = {
  number: () => random.one(NUMBERS),
  string: () => random.one(STRINGS),
  boolean: () => random.chance(0.5),
  numbers: () => Array.from({ length: random.below(5) }, makers.number),
  strings: () => Array.from({ length: random.below(4) }, makers.string),
  documents: () => Array.from({ length: random.below(4) }, () => ({ k: makers.string(), v: makers.number() })),
  date,
};

/** Fields by the type that they have, where they are there and not null. */
const FIELDS = {
  number: ["n", "m", "sub.n"],
  string: ["s", "t", "sub.s"],
  boolean: ["flag"],
  numbers: ["ns"],
  strings: ["ss"],
  documents: ["ds"],
  date: ["d"],
};

function document(id) {
  const made = { _id: id };
  const set = (target, name, type) => {
    if (random.chance(0.1)) return;
    target[name] = random.chance(0.1) ? null : makers[type]();
  };
  for (const [name, type] of Object.entries({ n: "number", m: "number", s: "string", t: "string", flag: "boolean" }))
    set(made, name, type);
  if (random.chance(0.8)) {
    made.sub = {};
    set(made.sub, "n", "number");
    set(made.sub, "s", "string");
  }
  for (const [name, type] of Object.entries({ ns: "numbers", ss: "strings", ds: "documents", d: "date" }))
    set(made, name, type);
  return made;
}

// Expressions by the type of their result. A function makes the arguments.
const of = (type) => (depth) => expression(type, depth);
const list = (...types) => (depth) => types.map((type) => expression(type, depth));
/** As list, with something where there is nothing. */
const there = (...types) => (depth) =>
  types.map((type) => ({ $ifNull: [expression(type, depth), { $literal: makers[type]() }] }));
const several = (type) => (depth) => Array.from({ length: 1 + random.below(3) }, () => expression(type, depth));
const named = (names) => (depth) =>
  Object.fromEntries(Object.entries(names).map(([name, make]) => [name, typeof make === "function" ? make(depth) : make]));
const anything = () => random.one(["number", "string", "boolean", "numbers", "date"]);
const EXPRESSIONS = {
  number: {
    $add: several("number"), $subtract: list("number", "number"), $multiply: several("number"),
    $abs: of("number"), $ceil: of("number"), $floor: of("number"), $trunc: of("number"),
    $round: (depth) => [expression("number", depth), random.below(3)],
    $strLenCP: (depth) => ({ $ifNull: [expression("string", depth), ""] }),
    $size: (depth) => ({ $ifNull: [expression("numbers", depth), []] }),
    $sum: of("numbers"), $avg: of("numbers"), $max: of("numbers"), $min: of("numbers"),
    $first: of("numbers"), $last: of("numbers"),
    $arrayElemAt: (depth) => [expression("numbers", depth), random.below(5) - 2],
    $indexOfArray: list("numbers", "number"), $indexOfCP: (depth) => [{ $ifNull: [expression("string", depth), "x"] }, random.one(["a", "b", "l"])],
    $year: of("date"), $month: of("date"), $dayOfMonth: of("date"), $hour: of("date"), $dayOfYear: of("date"),
    $isoWeek: of("date"), $isoDayOfWeek: of("date"), $dayOfWeek: of("date"), $millisecond: of("date"),
    $cmp: there("number", "number"),
    $cond: list("boolean", "number", "number"), $ifNull: list("number", "number"),
    $reduce: (depth) => ({ input: expression("numbers", depth), initialValue: 0, in: { $add: ["$$value", "$$this"] } }),
    $let: (depth) => ({ vars: { x: expression("number", depth) }, in: { $add: ["$$x", 1] } }),
    $switch: (depth) => ({ branches: [{ case: expression("boolean", depth), then: expression("number", depth) }], default: 9 }),
    $dateDiff: (depth) => ({ startDate: { $ifNull: [expression("date", depth), date()] }, endDate: date(), unit: random.one(["day", "hour", "month", "year", "week"]) }),
  },
  string: {
    $concat: several("string"), $toLower: (depth) => ({ $ifNull: [expression("string", depth), ""] }), $toUpper: (depth) => ({ $ifNull: [expression("string", depth), ""] }),
    $substrCP: (depth) => [expression("string", depth), random.below(3), random.below(4)],
    $trim: named({ input: of("string") }), $ltrim: named({ input: of("string") }), $rtrim: named({ input: of("string"), chars: "abd " }),
    $replaceAll: named({ input: of("string"), find: "a", replacement: "XY" }),
    $replaceOne: named({ input: of("string"), find: "l", replacement: "" }),
    $toString: of("number"), $type: (depth) => expression(random.one(["string", "boolean", "numbers", "date"]), depth),
    $cond: list("boolean", "string", "string"), $ifNull: list("string", "string"),
    $arrayElemAt: (depth) => [expression("strings", depth), random.below(4) - 2],
    $dateToString: named({ date: of("date"), format: "%Y-%m-%dT%H:%M:%S.%LZ %j %V" }),
  },
  boolean: {
    $eq: (depth) => { const type = anything(); return there(type, type)(depth); },
    $ne: there("number", "number"), $gt: there("number", "number"), $gte: there("string", "string"),
    $lt: there("date", "date"), $lte: there("number", "number"),
    $and: several("boolean"), $or: several("boolean"), $not: (depth) => [expression("boolean", depth)],
    $in: (depth) => [expression("number", depth), { $ifNull: [expression("numbers", depth), []] }],
    $isArray: (depth) => [expression(anything(), depth)], $isNumber: (depth) => expression(anything(), depth),
    $anyElementTrue: (depth) => [{ $ifNull: [expression("numbers", depth), []] }],
    $allElementsTrue: (depth) => [{ $ifNull: [expression("numbers", depth), []] }],
    $setIsSubset: (depth) => [{ $ifNull: [expression("numbers", depth), []] }, { $ifNull: [expression("numbers", depth), []] }],
    $setEquals: (depth) => [{ $ifNull: [expression("numbers", depth), []] }, { $ifNull: [expression("numbers", depth), []] }],
    $regexMatch: named({ input: of("string"), regex: "l+o|a" }),
  },
  numbers: {
    $concatArrays: several("numbers"), $reverseArray: of("numbers"),
    $slice: (depth) => [expression("numbers", depth), random.one([1, 2, -1, -2])],
    $filter: (depth) => ({ input: expression("numbers", depth), as: "x", cond: { $gt: ["$$x", random.one(NUMBERS)] } }),
    $map: (depth) => ({ input: expression("numbers", depth), as: "x", in: { $multiply: ["$$x", 2] } }),
    $range: () => [random.below(5), random.below(9), 1 + random.below(3)],
    $sortArray: named({ input: of("numbers"), sortBy: -1 }),
    $firstN: (depth) => ({ n: 2, input: { $ifNull: [expression("numbers", depth), []] } }),
    $maxN: (depth) => ({ n: 2, input: { $ifNull: [expression("numbers", depth), []] } }),
    $cond: list("boolean", "numbers", "numbers"),
  },
  strings: { $split: (depth) => [expression("string", depth), ","], $concatArrays: several("strings") },
  date: {
    $dateAdd: (depth) => ({ startDate: { $ifNull: [expression("date", depth), date()] }, unit: random.one(["day", "hour", "minute", "week"]), amount: random.below(40) }),
    $dateTrunc: (depth) => ({ date: { $ifNull: [expression("date", depth), date()] }, unit: random.one(["day", "hour"]) }),
  },
};

function expression(type, depth) {
  const operators = Object.keys(EXPRESSIONS[type] ?? {});
  if (depth <= 0 || operators.length === 0 || random.chance(0.25)) {
    if (random.chance(0.25)) {
      const literal = makers[type]();
      return type === "string" || type === "strings" ? { $literal: literal } : literal;
    }
    return `$${random.one(FIELDS[type])}`;
  }
  const operator = random.one(operators);
  return { [operator]: EXPRESSIONS[type][operator](depth - 1) };
}

function condition(type) {
  const value = random.chance(0.1) ? null : makers[type]();
  const scalar = type === "numbers" ? makers.number() : type === "strings" ? makers.string() : value;
  const ordered = scalar ?? makers[type]();
  return random.one([
    () => scalar,
    () => ({ [random.one(["$gt", "$gte", "$lt", "$lte"])]: ordered }),
    () => ({ [random.one(["$eq", "$ne"])]: scalar }),
    () => ({ [random.one(["$in", "$nin"])]: [scalar, makers.number(), null].slice(0, 1 + random.below(3)) }),
    () => ({ $exists: random.chance(0.5) }),
    () => ({ $not: { $gt: ordered } }),
    () => (type === "numbers" || type === "strings" ? { $size: random.below(4) } : { $ne: value }),
    () => (type === "numbers" ? { $elemMatch: { $gt: makers.number(), $lt: 10 } } : { $ne: scalar }),
    () => (type === "numbers" ? { $all: [makers.number(), makers.number()] } : { $eq: value }),
        () => (type === "string" ? { $regex: random.one(["^a", "b$", "l", "^$"]) } : { $exists: true }),
  ])();
}

function filter(depth) {
  if (0 < depth && random.chance(0.35)) {
    const parts = Array.from({ length: 1 + random.below(3) }, () => filter(depth - 1));
    return { [random.one(["$and", "$or", "$nor"])]: parts };
  }
  if (random.chance(0.1)) return { whole: { $mod: [random.one([2, 3]), random.below(2)] } };
  const type = random.one(Object.keys(FIELDS));
  if (type === "documents") {
    return random.one([
      () => ({ "ds.v": condition("number") }), () => ({ ds: { $elemMatch: { k: makers.string(), v: condition("number") } } }),
      () => ({ "ds.0.v": makers.number() }), () => ({ "ds.k": condition("string") }),
    ])();
  }
  return { [random.one(FIELDS[type])]: condition(type) };
}

function update() {
  const number = random.one(["n", "m", "sub.n", "fresh"]);
  return random.one([
    () => ({ $set: { [random.one(["n", "sub.s", "fresh.deep", "ns"])]: random.one([1, "x", null, [1]]) } }),
    () => ({ $unset: { [random.one(["n", "sub", "sub.n", "ns", "absent"])]: "" } }),
    () => ({ $inc: { [number]: makers.number() } }), () => ({ $mul: { [number]: makers.number() } }),
    () => ({ $min: { [number]: makers.number() } }), () => ({ $max: { [number]: makers.number() } }),
    () => ({ $push: { ns: makers.number() } }), () => ({ $push: { ns: { $each: makers.numbers(), $position: random.below(3) } } }),
    () => ({ $push: { ns: { $each: makers.numbers(), $sort: random.one([1, -1]), $slice: random.one([2, -2, 0]) } } }),
    () => ({ $addToSet: { ns: makers.number() } }), () => ({ $addToSet: { fresh: { $each: makers.numbers() } } }),
    () => ({ $pull: { ns: random.one([{ $gt: makers.number() }, makers.number()]) } }),
    () => ({ $pull: { ds: { v: { $gte: makers.number() } } } }), () => ({ $pullAll: { ns: makers.numbers() } }),
    () => ({ $pop: { ns: random.one([1, -1]) } }), () => ({ $rename: { [random.one(["n", "s", "sub"])]: "renamed" } }),
    () => ({ $bit: { whole: { [random.one(["and", "or", "xor"])]: random.below(8) } } }),
  ])();
}

function stage() {
  const key = random.one(["$flag", "$n", "$sub.n", null]);
  return random.one([
    () => ({ $match: filter(1) }),
    () => ({ $group: { _id: key, c: { $sum: 1 }, t: { $sum: "$m" }, a: { $avg: "$m" }, lo: { $min: "$n" }, hi: { $max: "$s" }, f: { $first: "$_id" }, l: { $last: "$s" }, all: { $push: { $ifNull: ["$_id", 0] } } } }),
    () => ({ $sort: { [random.one(["n", "s", "sub.n", "d"])]: random.one([1, -1]), _id: 1 } }),
    () => ({ $unwind: random.one(["$ns", "$ds", { path: "$ss", preserveNullAndEmptyArrays: true, includeArrayIndex: "at" }]) }),
    () => ({ $project: { n: 1, "sub.s": 1, r: expression(anything(), 1) } }),
    () => ({ $project: { ns: 0, "sub.n": 0, ds: 0 } }),
    () => ({ $addFields: { r: expression(anything(), 1), added: 1 } }),
    () => ({ $unset: ["n", "sub.s"] }), () => ({ $limit: 1 + random.below(20) }), () => ({ $skip: random.below(5) }),
    () => ({ $replaceRoot: { newRoot: { id: "$_id", n: "$n", inner: "$sub" } } }),
    () => ({ $sortByCount: "$flag" }),
    () => ({ $facet: { a: [{ $match: filter(0) }, { $group: { _id: null, c: { $sum: 1 } } }], b: [{ $sort: { _id: -1 } }, { $limit: 2 }, { $project: { _id: 1 } }] } }),
  ])();
}

/** A value as text that is the same for what counts as the same here: numbers by value, fields by name. */
function plain(value) {
  if (value === undefined) return "missing";
  if (value instanceof Date) return `date ${value.getTime()}`;
  if (Array.isArray(value)) return `[${value.map((one) => (one === undefined ? "null" : plain(one))).join(",")}]`;
  if (typeof value === "number") return value === 0 ? "0" : Number.isFinite(value) ? String(Number(value.toPrecision(12))) : String(value);
  if (value && typeof value === "object") {
    if (typeof value.toJSON === "function" && value._bsontype) return JSON.stringify(value);
    const fields = Object.entries(value).filter(([, inner]) => inner !== undefined);
    return `{${fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => `${name}:${plain(inner)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

// What mingo does otherwise than the manual says is not generated, so that a difference means something:
// - `$dateAdd` and `$dateTrunc` of null are null, and a month or year later is never in the month after; mingo
//   counts from 1970, and goes on into the next month.
// - `$push` leaves missing values out; mingo pushes null.
// - `$bucket` puts a value where the greatest boundary not above it is; mingo elsewhere.
// - `$toUpper` and `$toLower` of null are "", and change ASCII only.
// - `$mod` matches numbers only; mingo takes null for 0.
// - `$type` of a field with an array asks its elements; mingo the array.
// - arrays compare element by element; mingo otherwise where one is the other's beginning.
// - `$count` of no documents gives none; mingo a 0.
// - `%U` and `$week` count weeks from the first Sunday; mingo from the first day.
// - `$dateTrunc` to months and years keeps the year; mingo doesn't on the year's last day.
// - `{"a.0.b": null}` matches where an element is a document without a field `0`; mingo doesn't look for one.
// - documents compare by their first field's type, then its name, then its value; mingo otherwise.
// - `$addToSet` of nothing changes nothing; mingo removes what is there twice.
// - `$dateDiff` is a long; mingo's numbers have no such type. Changes of a document that `$unwind` made several of
//   are its own; mingo's share their inner documents.
// - null and missing differ in expressions and are below all else; mingo finds nothing below or above them.

const differences = new Map();
let compared = 0, refusedHere = 0, refusedThere = 0;

function compare(kind, request, input, ours, theirs) {
  compared += 1;
  if (ours === theirs) return;
  const text = JSON.stringify(request);
  const name = `${kind} ${[...new Set(text.match(/\$[a-zA-Z]+(?=")/g) ?? [])].sort().slice(0, 4).join(" ")}`;
  if (!differences.has(name)) differences.set(name, []);
  differences.get(name).push({ text, input, ours, theirs });
}

/** What both sides answer, or undefined where one refuses: mingo is lenient with types, MongoDB isn't. */
async function both(ours, theirs) {
  let answer;
  try {
    answer = await ours();
  } catch (error) {
    refusedHere += 1;
    if (process.env.SHOW_REFUSED) console.log(`refused: ${error.message}`);
    return undefined;
  }
  try {
    return [answer, theirs()];
  } catch {
    refusedThere += 1;
    return undefined;
  }
}

const client = new MongoClient(`mongodb://${address}/`, { serverSelectionTimeoutMS: 120_000 });
const collection = client.db("second_opinion").collection("documents");
const copy = (documents) => structuredClone(documents);

for (let round = 0; round < Number(roundsText); round += 1) {
  random = randomOf(Number(seedText) * 100_003 + round);
  const documents = Array.from({ length: 30 }, (_, id) => ({ ...document(id), whole: random.below(16) }));
  await collection.deleteMany({});
  await collection.insertMany(documents);
  for (let count = 0; count < 8; count += 1) {
    const asked = filter(2);
    const found = await both(
      () => collection.find(asked).sort({ _id: 1 }).project({ _id: 1 }).toArray(),
      () => mingo.find(copy(documents), asked).all().map(({ _id }) => ({ _id })),
    );
    if (found) {
      const ids = found.map((side) => new Set(side.map(({ _id }) => _id)));
      const odd = documents.find(({ _id }) => ids[0].has(_id) !== ids[1].has(_id));
      compare("filter", asked, odd && plain(odd), ...(odd ? ids.map((side) => String(side.has(odd._id))) : ["", ""]));
    }
    const computed = expression(anything(), 3);
    const values = await both(
      () => collection.aggregate([{ $sort: { _id: 1 } }, { $project: { r: computed } }]).toArray(),
      () => mingo.aggregate(copy(documents), [{ $sort: { _id: 1 } }, { $project: { r: computed } }]),
    );
    if (values) {
      const place = documents.findIndex((_, at) => plain(values[0][at]?.r) !== plain(values[1][at]?.r));
      const sides = place < 0 ? ["", ""] : values.map((side) => plain(side[place]?.r));
      compare("expression", computed, place < 0 ? "" : plain(documents[place]), ...sides);
    }
    const stages = [{ $sort: { _id: 1 } }, ...Array.from({ length: 1 + random.below(3) }, stage)];
    const results = await both(
      () => collection.aggregate(stages).toArray(),
      () => mingo.aggregate(copy(documents), stages),
    );
    if (results) {
      // No stage but $sort promises an order of groups.
      const isOrdered = !stages.some((one) => one.$group || one.$sortByCount);
      const sides = results.map((side) => { const texts = side.map(plain); return (isOrdered ? texts : texts.sort()).join("\n"); });
      compare("pipeline", stages, "", ...sides);
    }
  }
  const changes = update();
  const changed = await both(
    async () => {
      await collection.updateMany({}, changes);
      return collection.find().sort({ _id: 1 }).toArray();
    },
    () => copy(documents).map((one) => { const list = [one]; mingo.updateOne(list, {}, changes); return list[0]; }),
  );
  if (changed) {
    const place = documents.findIndex((_, at) => plain(changed[0][at]) !== plain(changed[1][at]));
    const sides = place < 0 ? ["", ""] : changed.map((side) => plain(side[place]));
    compare("update", changes, place < 0 ? "" : plain(documents[place]), ...sides);
  }
}
for (const [name, cases] of differences) {
  console.log(`${name}: ${cases.length}`);
  for (const { text, input, ours, theirs } of cases.slice(0, 2)) {
    console.log(`  ${text}\n    over    ${input}\n    frond   ${ours.slice(0, 400)}\n    mingo   ${theirs.slice(0, 400)}`);
  }
}
const total = [...differences.values()].reduce((sum, cases) => sum + cases.length, 0);
console.log(`${compared} compared, ${total} differ; refused here ${refusedHere}, there ${refusedThere}`);
await client.close();
process.exit(total === 0 ? 0 : 1);
