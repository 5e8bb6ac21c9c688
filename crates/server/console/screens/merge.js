// Merging another version into this branch: first what would come of it, then its conflicts, each
// field by itself: ours, theirs, what both began with, or something else. 1, 2, 3 and e choose.

import { ask as command, run } from "../api.js";
import { ask, attempt, button, confirm, field, h, number, put, tell } from "../dom.js";
import { branchOf, go, head, isVersion, link, refresh, state, writable } from "../main.js";
import { NULL, Value, brief, of, read, same, show as text } from "../values.js";

export async function show(place) {
  if (isVersion(place.version)) {
    put(place.main, h("div.page", head(place, "merge"), h("p.empty", "A version can't be merged into: choose a branch.")));
    return;
  }
  const status = state.status ?? {};
  if (status.merging || status.conflicts?.length) return conflicts(place);
  const other = place.query.get("from") ?? "";
  const names = state.branches.map((it) => it.branch).filter((name) => name !== branchOf(place));
  const select = h("select", h("option", { value: "" }, "Choose a branch"), names.map((name) => h("option", { value: name, selected: name === other }, name)));
  const version = h("input", { autocomplete: "off", placeholder: "or a tag, a commit", value: names.includes(other) ? "" : other });
  const box = h("div.stack");
  put(place.main, h("div.page", head(place, "merge"),
    h("form.row", { onsubmit: (event) => { event.preventDefault(); go(place.path, { from: version.value || select.value }); } },
      field(`Into ${branchOf(place)} merge`, select), field("Another version", version), h("button", { type: "submit" }, "Preview")), box));
  select.addEventListener("change", () => { if (select.value) go(place.path, { from: select.value }); });
  if (!other) { put(box, h("p.empty", "Choose what to merge: nothing changes before you have seen what would.")); return; }
  put(box, h("p.soft", "…"));
  const [preview, incoming] = await Promise.all([
    attempt(() => run(place.name, { frondMerge: 1, merge_in: other, dryRun: true }, place)),
    command(place.name, { frondLog: 1, range: `${branchOf(place)}..${other}`, limit: 50 }, place).catch(() => ({ commits: [] })),
  ]);
  if (!preview) { put(box); return; }
  const it = preview.plain();
  const words = { upToDate: "Everything of it is here already.", fastForward: "The branch moves forward: there is nothing to merge.", merged: "It merges cleanly.", conflicts: "Some of it conflicts." };
  const total = it.conflicts.reduce((sum, { count }) => sum + Number(count), 0);
  put(box, h("section.card.stack", h("div.row", h("h2", words[it.result] ?? it.result), total > 0 && h("span.badge.removed", `${number(total)} ${total === 1 ? "conflict" : "conflicts"}`)),
    it.conflicts.length > 0 && h("ul", it.conflicts.map((row) => h("li", h("strong", row.collection), ` ${number(row.count)} to decide, field by field, once it is begun`))),
    incoming.commits.length > 0 && h("details", { open: incoming.commits.length <= 10 }, h("summary", incoming.commits.length === 1 ? "1 commit comes in" : `${incoming.commits.length}${incoming.next ? " and more" : ""} commits come in`),
      h("ul", incoming.commits.map((commit) => h("li.row", h("a", { href: link(["db", place.name, "diff"], { from: commit.parents[0] ?? "NOTHING", to: commit.commitId }) }, commit.message.split("\n")[0]), h("span.soft.small", commit.author))))),
    state.dirty.get(place.name) && it.result !== "upToDate" && h("p.small", h("span.badge.changed", "uncommitted changes"), " are committed first."),
    writable() && it.result !== "upToDate" && h("form.row", { onsubmit: (event) => { event.preventDefault(); merge(place, other, event.target); } },
      field("Message", h("input", { name: "message", placeholder: `Merge ${other}`, size: 40, autocomplete: "off" })),
      h("button.primary", { type: "submit" }, total ? "Merge and decide" : "Merge"))));
}

async function merge(place, other, form) {
  try {
    const done = await command(place.name, { frondMerge: 1, merge_in: other, message: form.message.value || undefined });
    tell(done.result === "fastForward" ? "Moved forward" : "Merged", { action: { label: "Undo", run: async () => { await attempt(() => command(place.name, { frondUndo: 1 })); refresh(); } } });
    go(["db", place.name, "log"]);
  } catch (error) {
    if (error.code !== 96) { tell(error.message, { error: true }); return; }
    go(place.path);
    refresh();
  }
}

// ---- conflicts

async function conflicts(place) {
  const answer = await run(place.name, { frondConflicts: 1 }, place);
  const list = answer.get("conflicts").v.map((it) => new Conflict(place, it));
  const other = state.branches.find((it) => it.commitId === state.status.merging)?.branch;
  const merging = other ?? String(state.status.merging ?? "another version").slice(0, 10);
  const bar = h("div.bar");
  const update = () => {
    const decided = list.filter((it) => it.isDecided);
    const choices = list.flatMap((it) => it.choices), left = choices.filter((it) => !it.side).length;
    put(bar, h("span", { role: "status" }, list.length ? left ? `${number(left)} of ${number(choices.length)} to decide` : "All are decided" : "No conflicts are left"), h("span.end"),
      writable() && [button("Abort the merge", () => abort(place), { kind: "danger" }),
        list.length > 0 && button("Resolve what is decided", () => resolve(place, decided), { disabled: !decided.length }),
        button("Finish the merge", () => finish(place, list), { kind: "primary", disabled: left > 0 })]);
  };
  for (const it of list) it.onchange = update;
  const all = (side) => { for (const it of list) it.takeAll(side); update(); list[0]?.element.querySelector(".choice")?.focus(); };
  put(place.main, h("div.page", head(place, "merge"),
    h("div.row", h("h2", `A merge of ${merging} waits`), h("span.end"), list.length > 1 && [h("span.soft.small", "All undecided:"), button("Ours", () => all("ours")), button("Theirs", () => all("theirs"))]),
    list.length > 0 && h("p.soft.small", h("kbd", "1"), " ours  ", h("kbd", "2"), " theirs  ", h("kbd", "3"), " base  ", h("kbd", "e"), " edit  ", h("kbd", "↑"), h("kbd", "↓"), " move  ", h("kbd", "Shift"), " with 1 2 3: this path in all documents"),
    h("div.stack", list.map((it) => it.element)), bar));
  update();
  place.main.onkeydown = (event) => keys(event, list, update);
  place.signal.addEventListener("abort", () => { place.main.onkeydown = null; });
  place.main.querySelector(".choice")?.focus();
}

function keys(event, list, update) {
  const row = event.target.closest?.(".choice");
  if (!row || event.target.closest("textarea, input, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = () => [...document.querySelectorAll(".choice")];
  const at = rows().indexOf(row);
  // A choice draws its rows anew.
  const move = (to) => { const next = rows()[to]; next?.focus(); next?.scrollIntoView({ block: "nearest" }); };
  const { conflict, choice } = row;
  const side = { Digit1: "ours", Digit2: "theirs", Digit3: "base" }[event.code];
  if (event.key === "ArrowDown" || event.key === "j") move(at + 1);
  else if (event.key === "ArrowUp" || event.key === "k") move(at - 1);
  else if (event.key === "e") { event.preventDefault(); conflict.edit(choice); return; }
  else if (side && event.shiftKey) { for (const it of list) for (const each of it.choices) if (each.path === choice.path && it.collection === conflict.collection) it.take(each, side); update(); }
  else if (side) { conflict.take(choice, side); update(); move(at + 1); }
  else return;
  event.preventDefault();
}

/** The value at a path; undefined where there is none. */
function at(value, path) {
  if (path === "") return value;
  if (!value || value.t !== "object" && value.t !== "array") return undefined;
  // A name may hold dots itself: the longest that is there wins.
  const parts = path.split(".");
  for (let count = parts.length; count > 0; count--) {
    const found = value.get(parts.slice(0, count).join("."));
    if (found) return at(found, parts.slice(count).join("."));
  }
  return undefined;
}

/** A copy of `value` with another value at a path, or none. */
function withAt(value, path, put) {
  const parts = path.split(".");
  if (value.t === "array") {
    const items = [...value.v], position = Number(parts[0]);
    if (parts.length === 1) { if (put) items[position] = put; else items.splice(position, 1); } else items[position] = withAt(items[position] ?? of({}), parts.slice(1).join("."), put);
    return new Value("array", items);
  }
  if (value.t !== "object") return withAt(of({}), path, put);
  const fields = [...value.v];
  for (let count = parts.length; count > 0; count--) {
    const name = parts.slice(0, count).join("."), found = fields.findIndex(([field]) => field === name);
    if (found < 0) continue;
    const rest = parts.slice(count).join(".");
    if (rest) fields[found] = [name, withAt(fields[found][1], rest, put)];
    else if (put) fields[found] = [name, put];
    else fields.splice(found, 1);
    return new Value("object", fields);
  }
  if (put) fields.push([parts[0], parts.length === 1 ? put : withAt(of({}), parts.slice(1).join("."), put)]);
  return new Value("object", fields);
}

class Conflict {
  constructor(place, value) {
    this.place = place;
    this.id = value.get("id").v;
    this.collection = value.get("collection").v;
    this.kind = value.get("kind").v;
    this.document = value.get("_id");
    this.sides = {};
    for (const side of ["base", "ours", "theirs"]) {
      const it = value.get(side);
      this.sides[side] = it && it.t !== "null" ? it : undefined;
    }
    const paths = (value.get("paths")?.v ?? []).map((path) => path.v);
    // Field by field where each side has a document; else one side as a whole.
    this.isWhole = this.kind !== "document" || !paths.length || !this.sides.ours || !this.sides.theirs;
    this.choices = (this.isWhole ? [""] : paths).map((path) => ({ path, side: null, value: undefined }));
    this.element = h("section.conflict", h("header", h("strong", this.collection), this.document && h("code", brief(this.document, 60)), h("span.badge.removed", this.kind === "document" ? this.isWhole ? "whole document" : `${paths.length} ${paths.length === 1 ? "field" : "fields"}` : this.kind)),
      this.rows = h("div", { role: "list" }));
    this.render();
  }

  get isDecided() { return this.choices.every((it) => it.side); }

  valueOf(choice, side) { return side === "edited" ? choice.value : at(this.sides[side], choice.path); }

  render() {
    put(this.rows, this.choices.map((choice) => {
      const value = (side) => this.sides[side] ? at(this.sides[side], choice.path) : undefined;
      const possible = this.isWhole ? this.kind === "document" ? ["ours", "theirs", "base"] : ["ours", "theirs"] : ["ours", "theirs", "base"];
      const row = h("div.choice", { role: "listitem", tabindex: 0, "aria-label": `${choice.path || "whole"}: ${choice.side ?? "undecided"}` },
        h("span.name", choice.path || "whole"),
        ["ours", "theirs", "base"].map((side, position) => {
          const it = value(side), shown = it ? text(it) : "not there";
          return h("button.side", { type: "button", tabindex: -1, "aria-pressed": String(choice.side === side), disabled: !possible.includes(side), onclick: () => { this.take(choice, side); this.onchange(); this.focus(choice); } },
            h("small", `${position + 1} ${side}`), shown.length > 4000 ? `${shown.slice(0, 4000)}…` : shown);
        }),
        button("Edit", () => this.edit(choice), { kind: "quiet", disabled: this.kind !== "document" && this.isWhole && this.kind !== "unique" && this.kind !== "validator" && this.kind !== "indexKey" }),
        choice.side === "edited" && h("div.edited", h("small", "edited "), choice.value ? text(choice.value) : "not there"));
      Object.assign(row, { conflict: this, choice });
      return row;
    }));
  }

  focus(choice) { [...this.rows.children].find((row) => row.choice === choice)?.focus(); }

  take(choice, side) {
    if (side === "base" && this.isWhole && this.kind !== "document") return;
    choice.side = side;
    const held = this.rows.contains(document.activeElement) ? document.activeElement.closest(".choice")?.choice : null;
    this.render();
    if (held) this.focus(held);
  }

  takeAll(side) {
    for (const choice of this.choices) choice.side ??= side;
    this.render();
  }

  async edit(choice) {
    const start = this.valueOf(choice, choice.side ?? "ours") ?? this.valueOf(choice, "theirs") ?? NULL;
    const edited = await ask(choice.path || "The whole document", () => {
      const area = h("textarea", { rows: Math.min(18, text(start).split("\n").length + 2), value: text(start), spellcheck: "false", "aria-label": "Value" });
      const none = h("input", { type: "checkbox", id: "none" });
      return { body: h("div.stack", area, h("div.check", none, h("label", { for: "none" }, "Not there"))),
        take: () => {
          if (none.checked) return { value: undefined };
          const value = read(area.value);
          if (!choice.path && value.t !== "object") throw new Error("expected a document: {…}");
          return { value };
        } };
    }, { agree: "Take", wide: true });
    if (edited) {
      choice.side = "edited";
      choice.value = edited.value;
      this.render();
      this.onchange();
    }
    this.focus(choice);
  }

  /** Tells the server what was decided. */
  async resolve() {
    const send = (how) => run(this.place.name, { frondResolveConflict: 1, id: this.id, ...how });
    const [first] = this.choices;
    const all = (side) => this.choices.every((choice) => choice.side === side);
    if (this.isWhole) {
      if (first.side === "ours" || first.side === "theirs") return send({ resolution: first.side });
      return send({ value: this.valueOf(first, first.side) ?? NULL });
    }
    if (all("ours")) return send({ resolution: "ours" });
    // What merged cleanly stands in the working state already: only the fields in conflict are put.
    const now = await run(this.place.name, { find: this.collection, filter: { _id: of({ $eq: this.document }) }, limit: 1 });
    let document = now.get("cursor").get("firstBatch").v[0] ?? this.sides.ours;
    for (const choice of this.choices) {
      const value = this.valueOf(choice, choice.side);
      if (!same(at(document, choice.path), value)) document = withAt(document, choice.path, value);
    }
    return send({ value: document });
  }
}

async function resolve(place, decided) {
  const done = await attempt(async () => { for (const it of decided) await it.resolve(); return true; });
  if (done) refresh();
  return done;
}

async function finish(place, list) {
  const done = await attempt(async () => {
    for (const it of list) await it.resolve();
    return command(place.name, { frondMerge: 1, continue: true });
  });
  if (!done) { refresh(); return; }
  tell("Merged", { action: { label: "Undo", run: async () => { await attempt(() => command(place.name, { frondUndo: 1 })); refresh(); } } });
  go(["db", place.name, "log"]);
}

async function abort(place) {
  if (!await confirm("Abort the merge?", "What the merge did is taken back; what was written since stays.", "Abort")) return;
  if (await attempt(() => command(place.name, { frondMerge: 1, abort: true }))) refresh();
}
