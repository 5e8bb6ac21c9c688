// The collections of a version: what they have, and what they are made with.

import { ask as command, documents, run } from "../api.js";
import { ask, attempt, button, bytes, confirm, field, h, number, put, tell } from "../dom.js";
import { go, head, isVersion, link, refresh, state, writable } from "../main.js";
import { of, readDocument } from "../values.js";

export async function show(place) {
  if (!state.databases.includes(place.database)) {
    put(place.main, h("div.page", h("h1", place.database), h("p.empty", "There is no such database.")));
    return;
  }
  const { documents: listed } = await documents(place.name, { listCollections: 1 }, place);
  const collections = listed.map((it) => it.plain()).filter((it) => !it.name.startsWith("system.")).sort((a, b) => a.name < b.name ? -1 : 1);
  const changes = new Map((state.status?.collections ?? []).map((it) => [it.collection, it]));
  const canWrite = writable() && !isVersion(place.version);
  const rows = collections.map((it) => ({ it, count: h("td.number", "…"), size: h("td.number", "…"), indexes: h("td.number", "…") }));
  put(place.main, h("div.page",
    head(place, "collections",
      canWrite && button("New collection", () => create(place), { glyph: "plus" }),
      canWrite && !place.version && button("Drop database", () => dropDatabase(place), { kind: "quiet" })),
    rows.length ? h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Collections" }, h("table", h("thead", h("tr", h("th", "Collection"), h("th.number", "Documents"), h("th.number", "Size"), h("th.number", "Indexes"), h("th", "Since the last commit"), h("th", h("span.hidden", "Actions")))),
      h("tbody", rows.map(({ it, count, size, indexes }) => h("tr",
        h("td.title", h("a", { href: link(["db", place.name, "documents", it.name]) }, it.name), it.type === "view" && [" ", h("span.badge", "view")],
          it.options?.versioned === false && [" ", h("span.badge", "not versioned")], it.options?.capped && [" ", h("span.badge", "capped")]),
        count, size, indexes, h("td", told(changes.get(it.name))),
        h("td", canWrite && button("", () => drop(place, it.name), { kind: "quiet.square", glyph: "trash", title: `Drop ${it.name}` })))))))
      : h("p.empty", "No collections.")));
  for (const { it, count, size, indexes } of rows) {
    command(place.name, { collStats: it.name }, place).then((stats) => {
      count.textContent = number(stats.count ?? 0);
      size.textContent = bytes(stats.size ?? 0);
      indexes.textContent = stats.nindexes ?? "";
    }).catch(() => { for (const cell of [count, size, indexes]) cell.textContent = ""; });
  }
}

function told(change) {
  if (!change) return "";
  const parts = [[change.added, "+", "added"], [change.modified, "~", "modified"], [change.removed, "−", "removed"]];
  return h("span.row", parts.filter(([count]) => count).map(([count, sign, kind]) => h("span", h(`span.sign.${kind}`, sign), ` ${number(count)} ${kind}`)),
    change.change !== "modified" && h("span.badge", `collection ${change.change}`));
}

async function create(place) {
  const made = await ask("New collection", () => {
    const name = h("input", { required: true, autocomplete: "off" });
    const options = h("textarea", { rows: 4, placeholder: "{ }", spellcheck: "false" });
    return {
      body: h("div.stack", field("Name", name), field("Options", options, { hint: "As those of create: validator, capped, versioned, mergeRules, collation …" })),
      take: async () => {
        const given = readDocument(options.value);
        given.v.unshift(["create", of(name.value)]);
        await run(place.name, given);
        return name.value;
      },
    };
  }, { agree: "Create" });
  if (made) go(["db", place.name, "documents", made]);
}

async function drop(place, name) {
  if (!await confirm(`Drop ${name}?`, "Its documents and indexes go from this branch. Commits keep them, and Undo brings it back.", "Drop")) return;
  if (await attempt(() => run(place.name, { drop: name }))) {
    tell(`${name} was dropped`, { action: { label: "Undo", run: async () => { await attempt(() => run(place.name, { frondUndo: 1 })); refresh(); } } });
    refresh();
  }
}

async function dropDatabase(place) {
  const name = place.database;
  const done = await ask(`Drop ${name}?`, () => {
    const again = h("input", { autocomplete: "off" });
    return {
      body: h("div.stack", h("p", "All branches and the whole history go. Undo brings them back for two weeks."), field("Write its name", again)),
      take: async () => {
        if (again.value !== name) throw new Error("that is another name");
        return run(name, { dropDatabase: 1 });
      },
    };
  }, { agree: "Drop", danger: true });
  if (!done) return;
  tell(`${name} was dropped`, { action: { label: "Undo", run: async () => { await attempt(() => run(name, { frondUndo: 1 })); refresh(); } } });
  go([]);
}
