// A collection's indexes: what each takes and how often it was used; made, hidden and dropped here.

import { ask as command, documents, run } from "../api.js";
import { ask, attempt, button, bytes, confirm, field, h, number, put, tell } from "../dom.js";
import { head, isVersion, refresh, writable } from "../main.js";
import { of, readDocument, show as text } from "../values.js";

export async function show(place) {
  const canWrite = writable() && !isVersion(place.version);
  const [listed, stats, uses] = await Promise.all([
    documents(place.name, { listIndexes: place.collection }, place),
    command(place.name, { collStats: place.collection }, place).catch(() => ({})),
    documents(place.name, { aggregate: place.collection, pipeline: [{ $indexStats: {} }], cursor: {} }, place).catch(() => ({ documents: [] })),
  ]);
  const used = new Map(uses.documents.map((it) => [it.get("name").v, it.plain()]));
  const shown = ["key", "name", "v", "ns", "unique", "sparse", "hidden"];
  put(place.main, h("div.page", head(place, "indexes", canWrite && button("New index", () => create(place), { glyph: "plus" })),
    h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Indexes" }, h("table", h("thead", h("tr", h("th", "Name"), h("th", "Keys"), h("th", "Kind"), h("th.number", "Size"), h("th.number", "Used"), h("th", h("span.hidden", "Actions")))),
      h("tbody", listed.documents.map((index) => {
        const name = index.get("name").v, use = used.get(name), hidden = index.get("hidden")?.v === true;
        const size = stats.indexSizes?.[name];
        return h("tr", h("td", name), h("td.mono", text(index.get("key"), null)),
          h("td", h("span.row", ["unique", "sparse", "hidden"].filter((it) => index.get(it)?.v === true).map((it) => h("span.badge", it)),
            index.v.filter(([field]) => !shown.includes(field)).map(([field, value]) => h("span.badge", `${field}: ${text(value, null).slice(0, 60)}`)))),
          h("td.number", size === undefined ? "" : bytes(size)), h("td.number", use ? number(use.accesses.ops) : ""),
          h("td", canWrite && name !== "_id_" && h("span.row", button(hidden ? "Show" : "Hide", () => hide(place, name, !hidden), { kind: "quiet" }),
            button("", () => drop(place, name), { kind: "quiet.square", glyph: "trash", title: `Drop ${name}` }))));
      }))))));
}

async function create(place) {
  const made = await ask("New index", () => {
    const keys = h("textarea", { rows: 2, placeholder: "{ price: 1, name: -1 }", spellcheck: "false", required: true });
    const options = h("textarea", { rows: 3, placeholder: "{ unique: true }", spellcheck: "false" });
    return {
      body: h("div.stack", field("Keys", keys), field("Options", options, { hint: "unique, sparse, partialFilterExpression, expireAfterSeconds, collation, include …" })),
      take: async () => {
        const key = readDocument(keys.value), given = readDocument(options.value);
        if (!key.v.length) throw new Error("an index has a key at least");
        const name = key.v.map(([path, value]) => `${path}_${value.v}`).join("_");
        const index = of({ key, name });
        for (const [option, value] of given.v) { if (option === "name") index.v[1][1] = value; else index.v.push([option, value]); }
        await run(place.name, { createIndexes: place.collection, indexes: [index] }, place);
        return true;
      },
    };
  }, { agree: "Build" });
  if (made) { tell("Built"); refresh(); }
}

async function hide(place, name, hidden) {
  if (await attempt(() => run(place.name, { collMod: place.collection, index: { name, hidden } }))) refresh();
}

async function drop(place, name) {
  if (!await confirm(`Drop ${name}?`, "Searches that use it get slower. To try that first, hide it.", "Drop")) return;
  if (await attempt(() => run(place.name, { dropIndexes: place.collection, index: name }))) refresh();
}
