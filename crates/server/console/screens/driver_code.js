// An aggregation as code of a driver, to be pasted: the same pipeline, the same types.

import { show, write } from "../values.js";

const quote = JSON.stringify;
const indent = (text, by) => text.replaceAll("\n", `\n${by}`);

/** The languages, and how each says a pipeline of a collection. */
export const LANGUAGES = {
  Shell: (database, collection, pipeline) => `db.getSiblingDB(${quote(database)}).getCollection(${quote(collection)}).aggregate(${show(pipeline)})`,
  Python: (database, collection, pipeline) => `from bson import json_util

pipeline = json_util.loads(r'''${escaped(extended(pipeline))}''')
for document in client[${quote(database)}][${quote(collection)}].aggregate(pipeline):
    print(document)`,
  "Node.js": (database, collection, pipeline) => `const { EJSON } = require("bson");

const pipeline = EJSON.parse(String.raw\`${escaped(extended(pipeline)).replaceAll("\`", "\\u0060").replaceAll("\${", "\\u0024{")}\`, { relaxed: false });
for await (const document of client.db(${quote(database)}).collection(${quote(collection)}).aggregate(pipeline)) {
  console.log(document);
}`,
  Java: (database, collection, pipeline) => `List<Bson> pipeline = List.of(
    ${pipeline.v.map((stage) => `BsonDocument.parse(${quote(write(stage))})`).join(",\n    ")});
client.getDatabase(${quote(database)}).getCollection(${quote(collection)}).aggregate(pipeline).forEach(System.out::println);`,
  Rust: (database, collection, pipeline) => `let pipeline: Vec<Document> = serde_json::from_str(r###"${extended(pipeline)}"###)?;
let mut found = client.database(${quote(database)}).collection::<Document>(${quote(collection)}).aggregate(pipeline).await?;`,
};

/** Canonical extended JSON, a stage a line: it keeps every type in every language. */
const extended = (pipeline) => pipeline.v.length ? `[\n  ${indent(pipeline.v.map(write).join(",\n"), "  ")}\n]` : "[]";

/** Without what would end a string of Python: JSON can say it otherwise. */
const escaped = (json) => json.replaceAll("'", "\\u0027");
