// How two versions differ: by collection, by document, by field. From HEAD to the working state it
// is what a commit takes, and can be committed here.

import { ask as command, documents, run } from "../api.js";
import { ask, attempt, button, confirm, field, h, number, put, tell } from "../dom.js";
import { branchOf, go, head, isVersion, link, refresh, state, writable } from "../main.js";
import { brief, of, show as text, write } from "../values.js";

const ROWS_MAX = 2000, SHOWN = 200;

export async function show(place) {
  // A range has both sides: a..b, or a...b, from where they parted.
  const from = place.query.get("from") || "HEAD", isRange = from.includes("..");
  const to = isRange ? "" : place.query.get("to") || (isVersion(place.version) ? "HEAD" : "WORKING");
  const isWorking = from === "HEAD" && to === "WORKING";
  const names = [...new Set(["HEAD", "WORKING", "NOTHING", ...state.branches.map((it) => it.branch), from, to].filter(Boolean))];
  const list = h("datalist", { id: "revisions" }, names.map((name) => h("option", { value: name })));
  const choose = (value, label) => field(label, h("input", { value, list: "revisions", autocomplete: "off", spellcheck: "false" }));
  const [fromField, toField] = [choose(from, "From"), choose(to, "To")];
  const value = (it) => it.querySelector("input").value;
  const box = h("div.changes", h("p.soft", "…"));
  const canWrite = writable() && !isVersion(place.version);
  put(place.main, h("div.page", head(place, "diff", isWorking && canWrite && button("Commit", () => commit(place), { kind: "primary" })),
    h("form.row", { onsubmit: (event) => { event.preventDefault(); go(place.path, { from: value(fromField), to: value(toField) }); } }, fromField, toField, list,
      h("button", { type: "submit" }, "Compare"),
      button("Swap", () => go(place.path, { from: to, to: from }), { kind: "quiet" })), box));
  const { documents: rows, more } = await documents(place.name, { aggregate: 1, pipeline: [{ $diff: isRange ? { from } : { from, to } }], cursor: { batchSize: 200 } }, { max: ROWS_MAX, signal: place.signal });
  if (!rows.length) { put(box, h("p.empty", isWorking ? "Nothing has changed since the last commit." : "They are equal.")); return; }
  const collections = new Map();
  for (const row of rows) {
    const name = row.get("collection").v;
    if (!collections.has(name)) collections.set(name, []);
    collections.get(name).push(row);
  }
  put(box, more && h("p.badge.changed", `The first ${number(ROWS_MAX)} of more changes`),
    [...collections].map(([name, rows]) => collection(place, name, rows, collections.size, isWorking && canWrite)));
}

function collection(place, name, rows, count, canRestore) {
  const counts = { added: 0, modified: 0, removed: 0 };
  for (const row of rows) if (row.get("kind").v === "document") counts[row.get("change").v]++;
  const box = h("div");
  let shown = 0;
  const grow = () => {
    const next = rows.slice(shown, shown + SHOWN);
    shown += next.length;
    box.append(...next.map((row) => change(place, name, row, canRestore)));
    if (shown < rows.length) {
      const more = button(`${number(rows.length - shown)} more`, () => { more.remove(); grow(); }, { kind: "quiet" });
      box.append(more);
    }
  };
  grow();
  return h("details.card", { open: count <= 8 || rows.length < 20 }, h("summary", h("strong", name), " ",
    [["+", "added"], ["~", "modified"], ["−", "removed"]].filter(([, kind]) => counts[kind]).map(([sign, kind]) => h("span", " ", h(`span.sign.${kind}`, { "aria-hidden": "true" }, sign), ` ${number(counts[kind])} ${kind}`))),
    box);
}

const SIGNS = { added: "+", removed: "−", modified: "~" };

function change(place, name, row, canRestore) {
  const kind = row.get("change").v, what = row.get("kind").v, id = row.get("_id");
  const title = what === "document" ? id ? brief(id, 60) : "" : `${what} ${row.get("name")?.v ?? ""}`;
  const side = (of, name) => of.get(name) ?? leftOut(of.get(`${name}Bytes`));
  const before = side(row, "before"), after = side(row, "after");
  const fields = row.get("changes")?.v;
  return h("div.change",
    h("div.id", h(`span.sign.${kind}`, { "aria-hidden": "true" }, SIGNS[kind] ?? "~"), h("span", title), h("span.soft.small", kind), h("span.end"),
      what === "document" && id && kind !== "removed" && h("a.small", { href: link(["db", place.name, "document", name], { id: write(id) }) }, "history"),
      canRestore && what === "document" && id && button("Take back", () => restore(place, name, id), { kind: "quiet.small", title: "Make it what it was at the last commit" })),
    fields?.length ? fields.map((it) => path(it.get("path").v, side(it, "from"), side(it, "to")))
      : kind === "modified" ? path("", before, after)
      : h(`pre.small.${kind === "removed" ? "from" : "to"}`, text(after ?? before ?? of({}))));
}

/** What stands for a value that was too large for its row. */
function leftOut(bytes) {
  return bytes && of(`${number(bytes.plain())} bytes`);
}

export function path(name, from, to) {
  return h("div.path", h("span", name), from ? h("span.from", text(from)) : h("span.soft", "—"), to ? h("span.to", text(to)) : h("span.soft", "—"));
}

async function restore(place, collection, id) {
  if (!await confirm("Take the changes back?", `${collection} ${brief(id)} becomes what it was at the last commit.`, "Take back")) return;
  if (await attempt(() => run(place.name, { frondRestore: 1, collection, document: id }))) refresh();
}

export async function commit(place) {
  const done = await ask(`Commit to ${branchOf(place)}`, () => {
    const message = h("textarea", { rows: 4, required: true, "aria-label": "Message", placeholder: "What changed, and why" });
    const author = h("input", { value: localStorage.getItem("author") ?? "", autocomplete: "name", placeholder: state.session.user ?? "anonymous" });
    return {
      body: h("div.stack", field("Message", message), field("Author", author)),
      take: async () => {
        if (!message.value.trim()) throw new Error("a commit has a message");
        localStorage.setItem("author", author.value);
        return command(place.name, { frondCommit: 1, message: message.value, author: author.value || undefined });
      },
    };
  }, { agree: "Commit" });
  if (!done) return;
  tell(`Committed ${done.commitId.slice(0, 10)}`, { action: { label: "Undo", run: async () => { await attempt(() => command(place.name, { frondUndo: 1 })); refresh(); } } });
  state.dirty.set(place.name, false);
  refresh();
}

