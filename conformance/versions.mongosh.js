// What `frond shell` adds to mongosh, run by it: prints one JSON line a step, [name, what is shown],
// with ids and dates replaced.

/** What the shell shows of a value. */
function shown(value) {
  const text = value[Symbol.for("nodejs.util.inspect.custom")]();
  const withoutIds = text.replace(/\b[0-9a-v]{16}\b/g, "CONFLICT").replace(/\b[0-9a-v]{10}\b/g, "COMMIT");
  return withoutIds.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, "DATE").split("\n");
}

function step(title, value) {
  print(JSON.stringify([title, shown(value)]));
}

function refused(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("not refused");
}

const price = (database, value) => database.items.updateOne({ _id: 1 }, { $set: { price: value } });
const shop = db.getSiblingDB("shell");
const sale = db.getSiblingDB("shell@sale");
shop.items.insertMany([{ _id: 1, name: "lamp", price: 30 }, { _id: 2, name: "desk", price: 240 }]);
step("status before a commit", shop.status());
step("commit", shop.commit("first items", { author: "Ada" }));
step("status after it", shop.status());
step("branch", shop.branch("sale"));
step("branch with a name that drivers refuse", shop.branch("v1/x.y", "main"));
price(sale, 15);
step("diff of what is not committed", sale.diff());
sale.commit("half price", { author: "Bob" });
step("branches", sale.branches());
step("log", sale.log());
step("log of one", sale.log(1));
print(JSON.stringify(["commits are values", sale.log("main..sale").map((commit) => commit.message)]));
step("diff of branches", shop.diff("main", "sale"));
step("diff of a range", shop.diff("main...sale"));
step("dry run", shop.merge("sale", { dryRun: true }));
price(shop, 31);
shop.commit("dearer", { author: "Ada" });
print(JSON.stringify(["merge with a conflict", refused(() => shop.merge("sale")).message.split("\n")]));
step("conflicts", shop.conflicts());
step("resolve", shop.resolve(shop.conflicts()[0].id, "theirs"));
step("continue", shop.merge({ continue: true, message: "the sale begins" }));
step("nothing to merge", shop.merge("sale"));
print(JSON.stringify(["show", shown(shop.show("main~1")).filter((line) => !/^(commit|Date:) /.test(line))]));
step("history", shop.history("items", 1));
step("blame", shop.blame("items", 1));
step("tag", shop.tag("v1"));
step("tag of an older version", shop.tag("v0", { target: "main~1", message: "dear" }));
step("tags", shop.tags());
shop.items.insertOne({ _id: 3, name: "chair" });
shop.commit("a chair", { author: "Ada" });
print(JSON.stringify(["revert", shown(shop.revert("HEAD", { author: "Ada" })).slice(0, 1)]));
step("cherry-pick", shop.cherryPick("main~1"));
step("reset", shop.reset("v1", { hard: true }));
step("rename a branch", shop.branch("v1/x.y", { rename: "old" }));
print(JSON.stringify(["reflog", shop.reflog(2).map((change) => change.why)]));
shop.tags.insertOne({ _id: "red" });
print(JSON.stringify(["a collection of a method's name", [shop.tags.findOne()._id, shop.tags().length]]));
step("undo", shop.undo());
shop.commit("red", { author: "Ada" });
price(shop, 99);
print(JSON.stringify(["undo behind which something was written", refused(() => shop.undo()).message.split(":")[0]]));
step("restore", shop.restore("items"));
step("restore an older version", shop.restore("items", "v1"));
print(JSON.stringify(["explains a command", shop.frondHelp("merge").command]));
print(JSON.stringify(["what was meant", refused(() => shop.runCommand({ frondComit: 1 })).message]));
