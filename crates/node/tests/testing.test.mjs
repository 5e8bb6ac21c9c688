// The database for tests: fixtures in each branch, and nothing left behind.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";

import { openForTests } from "fronddb/testing";

import { dataFor } from "./directory.mjs";

const fixtures = (base) =>
  base.collection("items").insertMany(Array.from({ length: 1000 }, (_, number) => ({ _id: number, price: 10 })));

/** Directories of this process. */
const left = () => {
  const isOwn = (name) => name.startsWith(`frond-test-${process.pid}-`);
  return ["/dev/shm", tmpdir()].filter(existsSync).flatMap((place) => readdirSync(place).filter(isOwn));
};

test("tests don't see one another", async () => {
  const database = await openForTests({ fixtures });
  assert.equal(left().length, 1);
  const [one, two] = await Promise.all([database.branch(), database.branch()]);
  await one.collection("items").deleteMany({});
  assert.equal(await one.collection("items").countDocuments(), 0);
  assert.equal(await two.collection("items").countDocuments(), 1000);
  await database.reset(one);
  assert.equal(await one.collection("items").countDocuments(), 1000);
  await database.drop(one);
  await database.drop(two);
  assert.deepEqual((await database.base.branches()).map((it) => it.branch), ["main"]);
  await database.close();
  assert.deepEqual(left(), []);
});

test("fixtures that fail leave nothing", async () => {
  await assert.rejects(openForTests({ fixtures: () => Promise.reject(new Error("no fixtures")) }), /no fixtures/);
  assert.deepEqual(left(), []);
});

test("a directory that was named stays, and begins anew", async (t) => {
  const data = dataFor(t);
  for (let run = 0; run < 2; run += 1) {
    const database = await openForTests({ fixtures, directory: data });
    const branch = await database.branch();
    assert.equal(await branch.collection("items").countDocuments(), 1000);
    await database.close();
  }
  assert.ok(existsSync(data));
});

test("times, for who looks: none is asserted", async (t) => {
  const begun = performance.now();
  const database = await openForTests({ fixtures });
  t.diagnostic(`ready with 1000 fixtures: ${(performance.now() - begun).toFixed(1)} ms`);
  for (const what of ["branch", "reset"]) {
    const branch = await database.branch();
    const times = [];
    for (let round = 0; round < 100; round += 1) {
      await branch.collection("items").updateOne({ _id: round }, { $set: { price: round } });
      const began = performance.now();
      await (what === "reset" ? database.reset(branch) : database.branch());
      times.push(performance.now() - began);
    }
    times.sort((a, b) => a - b);
    t.diagnostic(`${what}: ${times[50].toFixed(2)} ms, at worst ${times[99].toFixed(2)} ms`);
  }
  await database.close();
});
