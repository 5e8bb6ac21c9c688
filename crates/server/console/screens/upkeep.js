// The space that the data take, and what frees it; how backups are made.

import { ask as command } from "../api.js";
import { ask, button, bytes, field, h, number, put, tell } from "../dom.js";
import { link, writable } from "../main.js";

const WAYS = {
  quick: ["Quick: what is dead already", { quick: true }],
  usual: ["All: folds recent writes and packs history first", {}],
  purge: ["Purge: rewrites every pack, after an erase", { purge: true }],
};

export async function show(place) {
  const { databases, totalSize } = await command("admin", { listDatabases: 1 }, place);
  const result = h("div.stack", { role: "status" });
  const address = `${location.hostname}:PORT`;
  put(place.main, h("div.page", h("div.head", h("h1", "Space and backups"), h("span.end"),
    writable() && button("Free space", () => free(place, result), { kind: "primary" })),
  h("section.stack", h("h2", "Databases"), h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Databases" }, h("table", h("thead", h("tr", h("th", "Database"), h("th.number", "On disk"))),
    h("tbody", databases.sort((a, b) => b.sizeOnDisk - a.sizeOnDisk).map((it) => h("tr", h("td", h("a", { href: link(["db", it.name]) }, it.name)), h("td.number", bytes(it.sizeOnDisk))))),
    totalSize !== undefined && h("tfoot", h("tr", h("th", { scope: "row" }, "All"), h("td.number", bytes(totalSize))))))),
  result,
  h("section.stack", h("h2", "Backups"), h("p", "A backup is made at a command line, while the server runs: it holds every commit, and sends only what its place lacks."),
    h("dl.lines.small", [["Make one", `backup PLACE --uri ${address}`], ["Look at them", "backup PLACE --list"], ["Read all again", "backup PLACE --verify"], ["Restore", "restore --backup PLACE --data DIR"]]
      .map(([what, line]) => h("div", h("dt", what), h("dd", h("code", `frond ${line}`), button("", () => navigator.clipboard?.writeText(`frond ${line}`).then(() => tell("Copied")), { kind: "quiet.square", glyph: "copy", title: `Copy: ${what}` }))))))));
}

async function free(place, result) {
  const answer = await ask("Free space", () => {
    const way = h("select", Object.entries(WAYS).map(([name, [title]]) => h("option", { value: name }, title)));
    return {
      body: h("div.stack", field("How", way), h("p.soft", "What was dropped, deleted or replaced can be brought back for two weeks; until then its space stays taken. Clients can work meanwhile.")),
      take: () => command("admin", { frondGc: 1, ...WAYS[way.value][1] }, place),
    };
  }, { agree: "Free" });
  if (!answer) return;
  const freed = Math.max(0, Number(answer.bytesBefore) - Number(answer.bytesAfter)), { kept } = answer;
  put(result, h("h2", freed ? `${bytes(freed)} freed` : "Nothing to free"),
    h("p", `${bytes(Number(answer.bytesAfter))} are left, in ${count(answer.chunksLive, "chunk")}; ${count(answer.packsRemoved, "pack")} less than before.`),
    Number(kept?.bytes) > 0 && h("p.soft", `${bytes(Number(kept.bytes))} are kept so that they can be brought back`, kept.until instanceof Date && [", until ", until(kept.until)], "."));
}

const count = (value, noun) => `${number(Number(value))} ${noun}${Number(value) === 1 ? "" : "s"}`;
const until = (date) => h("time", { datetime: date.toISOString() }, date.toISOString().slice(0, 16).replace("T", " "));
