// What Compass does with a server, by its own layer: node data_service.mjs DIRECTORY URI AUTHORITY,
// where mongodb-data-service is installed in DIRECTORY. Prints [step, result] a line.

import { createRequire } from "node:module";

const require = createRequire(`${process.argv[2]}/package.json`);
const { connect } = require("mongodb-data-service");
const NAMESPACE = "compass.things";
let service;
let isRight = true;

async function step(name, expected, work) {
  let found;
  try {
    found = await work();
  } catch (error) {
    found = `${error.name}: ${error.message}`;
  }
  const right = JSON.stringify(found) === JSON.stringify(expected);
  if (!right) isRight = false;
  console.log(right ? `  ${name}` : `  FAILED ${name}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
}

const names = (list) => list.map(({ name }) => name).sort();
const ids = (documents) => documents.map(({ _id }) => _id);

await step("connect", true, async () => {
  service = await connect({ connectionOptions: { connectionString: process.argv[3] } });
  return service.isConnected() && service.isWritable() && !service.isMongos();
});
await step("instance", ["server", "enterprise: no", "8"], async () => {
  const { build, dataLake, genuineMongoDB, host, auth } = await service.instance();
  const isThere = Boolean(host.os && host.cpu_cores && host.memory_bits && auth.user);
  if (dataLake.isDataLake || !genuineMongoDB.isGenuine || !isThere) return { dataLake, genuineMongoDB, host, auth };
  return ["server", `enterprise: ${build.isEnterprise ? "yes" : "no"}`, build.version.split(".")[0]];
});
await step("createCollection", "things", async () => (await service.createCollection(NAMESPACE, {})).collectionName);
await step("insertMany", 100, async () => {
  const documents = Array.from({ length: 100 }, (_, _id) => ({ _id, group: _id % 7, place: { city: `c${_id % 3}` } }));
  return (await service.insertMany(NAMESPACE, documents)).insertedCount;
});
await step("insertOne", 100, async () => (await service.insertOne(NAMESPACE, { _id: 100 })).insertedId);
await step("find", [3, 10, 17], async () => ids(await service.find(NAMESPACE, { group: 3 }, { sort: { _id: 1 }, limit: 3 })));
await step("findCursor", [99, 98], async () => {
  return ids(await service.findCursor(NAMESPACE, { group: { $exists: true } }, { sort: { _id: -1 }, limit: 2 }).toArray());
});
await step("count", 15, () => service.count(NAMESPACE, { group: 0 }));
await step("estimatedCount", 101, () => service.estimatedCount(NAMESPACE));
await step("aggregate", 7, async () => {
  return (await service.aggregate(NAMESPACE, [{ $match: { group: { $gte: 0 } } }, { $group: { _id: "$group" } }])).length;
});
await step("sample", 5, async () => (await service.sample(NAMESPACE, { size: 5 })).length);
await step("createIndex", "group_1", () => service.createIndex(NAMESPACE, { group: 1 }, {}));
await step("indexes", [["_id_", "REGULAR", true], ["group_1", "REGULAR", true]], async () => {
  const indexes = await service.indexes(NAMESPACE);
  return indexes.map(({ name, type, size }) => [name, type.toUpperCase(), size >= 0]);
});
await step("index usage", true, async () => {
  return (await service.indexes(NAMESPACE)).every(({ usageCount, usageSince }) => usageCount >= 0 && usageSince);
});
await step("explainFind", ["IXSCAN", 15], async () => {
  const { queryPlanner, executionStats } = await service.explainFind(NAMESPACE, { group: 0 });
  return [queryPlanner.winningPlan.inputStage.stage, executionStats.nReturned];
});
await step("explainAggregate", true, async () => {
  const pipeline = [{ $match: { group: 0 } }, { $group: { _id: "$place.city" } }];
  const { stages, queryPlanner } = await service.explainAggregate(NAMESPACE, pipeline, {}, { explainVerbosity: "queryPlanner" });
  return Boolean(stages ?? queryPlanner);
});
await step("findOneAndUpdate", 1, async () => {
  const found = await service.findOneAndUpdate(NAMESPACE, { _id: 1 }, { $set: { changed: 1 } }, { returnDocument: "after" });
  return found.changed;
});
await step("findOneAndReplace", { _id: 2, replaced: true }, () =>
  service.findOneAndReplace(NAMESPACE, { _id: 2 }, { replaced: true }, { returnDocument: "after" }),
);
await step("updateOne", 1, async () => (await service.updateOne(NAMESPACE, { _id: 3 }, { $set: { a: 1 } })).modifiedCount);
await step("updateMany", 15, async () => (await service.updateMany(NAMESPACE, { group: 1 }, { $set: { a: 1 } })).modifiedCount);
await step("previewUpdate", [1, 9], async () => {
  const { changes } = await service.previewUpdate(NAMESPACE, { _id: 4 }, { $set: { a: 9 } });
  return [changes.length, changes[0].after.a];
});
await step("bulkWrite", [1, 1], async () => {
  const operations = [{ insertOne: { document: { _id: 200 } } }, { deleteOne: { filter: { _id: 200 } } }];
  const { insertedCount, deletedCount } = await service.bulkWrite(NAMESPACE, operations, {});
  return [insertedCount, deletedCount];
});
await step("deleteOne", 1, async () => (await service.deleteOne(NAMESPACE, { _id: 100 })).deletedCount);
await step("deleteMany", 14, async () => (await service.deleteMany(NAMESPACE, { group: 6 })).deletedCount);
await step("createView", ["cheap", "things"], async () => {
  await service.createView("cheap", NAMESPACE, [{ $match: { group: 0 } }], {});
  return names(await service.listCollections("compass")).filter((name) => !name.startsWith("system."));
});
await step("listDatabases", true, async () => names(await service.listDatabases()).includes("compass"));
await step("collectionInfo", ["view", "things"], async () => {
  const { type, view_on } = await service.collectionInfo("compass", "cheap");
  return [type, view_on];
});
await step("collectionStats", [86, true, 2], async () => {
  const stats = await service.collectionStats("compass", "things", "collection");
  return [stats.document_count, stats.storage_size >= 0 && stats.avg_document_size > 0, stats.index_count];
});
await step("databaseStats", true, async () => {
  const { collection_count, document_count } = await service.databaseStats("compass");
  return collection_count >= 1 && document_count >= 86;
});
await step("serverStatus", true, async () => {
  const { mem, network, opcounters, globalLock, connections } = await service.serverStatus();
  return [mem.resident, network.bytesIn, opcounters.insert, globalLock.activeClients.total, connections.current].every(
    (value) => value >= 0,
  );
});
await step("top", true, async () => (await service.top()).totals[NAMESPACE].total.count > 0);
await step("currentOp, killOp", "Interrupted", async () => {
  const body = "() => { for (;;) {} }";
  const endless = [{ $match: { $expr: { $function: { body, args: [], lang: "js" } } } }];
  const ended = service.aggregate(NAMESPACE, endless, { maxTimeMS: 60_000 }).catch(({ codeName }) => codeName);
  let found;
  while (!found) {
    const { inprog } = await service.currentOp();
    found = inprog.find(({ ns, command }) => ns === NAMESPACE && command.pipeline);
  }
  // The service's own killOp says `id` where every server asks for `op`.
  await service._database("admin", "META").command({ killOp: 1, op: found.opid });
  return ended;
});
await step("renameCollection", ["cheap", "others"], async () => {
  await service.renameCollection(NAMESPACE, "others");
  return names(await service.listCollections("compass")).filter((name) => !name.startsWith("system."));
});
await step("fetchShardKey", null, () => service.fetchShardKey("compass.others"));
await step("getSearchIndexes", "not supported", async () => {
  return (await service.isListSearchIndexesSupported("compass.others")) ? "supported" : "not supported";
});
await step("dropIndex", ["_id_"], async () => {
  await service.dropIndex("compass.others", "group_1");
  return names(await service.indexes("compass.others"));
});
await step("dropCollection", true, () => service.dropCollection("compass.others"));
await step("dropDatabase", true, () => service.dropDatabase("compass"));
await service?.disconnect();
process.exit(isRight ? 0 : 1);
