// A document as a tree whose values can be edited, each with its type.
//
// What is edited is a draft; saving writes the difference: $set and $unset of the paths that
// changed, or the whole document where paths can't say it. It is written only if the fields that it
// touches are still what they were when they were read.

import { run } from "./api.js";
import { attempt, button, h, number, put } from "./dom.js";
import { NULL, TYPES, Value, brief, editable, make, of, same, size, visible, write } from "./values.js";

/** The characters of a string that are shown: layout of millions takes seconds. */
const SHOWN_MAX = 20000;
/** Those of a name. */
const NAME_MAX = 120;

const isNested = (value) => value.t === "object" || value.t === "array";
const copy = (value) => !isNested(value) ? value
  : new Value(value.t, value.v.map((it) => value.t === "object" ? [it[0], copy(it[1])] : copy(it)));

/** Shows `document`; `onchange` hears of each edit. */
export class Editor {
  constructor(document, { readOnly = false, onchange = () => {} } = {}) {
    this.original = document;
    this.draft = copy(document);
    this.readOnly = readOnly;
    this.onchange = onchange;
    this.open = new Set([""]);
    this.editing = null;
    this.element = h("div.tree", { role: "group", "aria-label": "Document" });
    this.render();
  }

  get isChanged() { return !same(this.draft, this.original); }

  render() {
    put(this.element, this.list(this.draft, this.original, []));
  }

  list(value, before, path) {
    const entries = value.t === "object" ? value.v : value.v.map((item, at) => [String(at), item]);
    const items = entries.slice(0, this.shown(path)).map(([name, item], at) => this.item(value, at, name, item, earlier(before, value, name, at), [...path, at]));
    const rest = entries.length - items.length;
    return h("ul", items, rest > 0 && h("li", button(`${rest} more`, () => { this.more.set(path.join("/"), this.shown(path) + 500); this.render(); }, { kind: "quiet" })),
      !this.readOnly && h("li", button(value.t === "object" ? "Add field" : "Add item", () => this.add(value, path), { kind: "quiet.small", glyph: "plus" })));
  }

  more = new Map();
  shown(path) { return this.more.get(path.join("/")) ?? 200; }

  item(parent, at, name, value, before, path) {
    const key = path.join("/"), nested = isNested(value), opened = this.open.has(key);
    const isId = path.length === 1 && name === "_id";
    const fixed = this.readOnly || isId && before !== undefined;
    const change = before === undefined ? ".fresh" : nested || same(before, value) ? "" : ".edited";
    const shownName = h("span.name", { dir: "auto", title: name.length > NAME_MAX && name }, name === "" ? "(no name)" : visible(name.length > NAME_MAX ? `${name.slice(0, NAME_MAX)}…` : name));
    if (this.editing === key && !fixed) return h("li", h(`div.leaf${change}`, this.form(parent, at, name, value, key)));
    const fold = nested && h("button.fold", { type: "button", "aria-expanded": String(opened), "aria-label": `${opened ? "Fold" : "Unfold"} ${name}`, onclick: () => { opened ? this.open.delete(key) : this.open.add(key); this.render(); this.focus(key, ".fold"); } }, opened ? "▾" : "▸");
    const edit = () => { this.editing = key; this.render(); this.element.querySelector("form .now")?.focus(); };
    const text = nested ? opened ? size(value) : brief(value) : value.t === "string" ? stringText(value.v) : brief(value, 4000);
    const shown = fixed || nested ? h(`span.value.t-${value.t}`, { dir: "auto" }, nested ? { onclick: fold && (() => fold.click()) } : {}, text)
      : h(`button.value.t-${value.t}`, { type: "button", dir: "auto", title: "Edit: Enter or F2", "aria-label": `${name}: ${text.length > 200 ? `${text.slice(0, 200)}…` : text}, ${value.t}. Edit`, onclick: edit,
        onkeydown: (event) => { if (event.key === "F2") { event.preventDefault(); edit(); } else if (event.key === "Delete") { event.preventDefault(); this.remove(parent, path); } } }, text);
    return h("li", { "data-path": key },
      h(`div.leaf${change}`, fold, shownName, shown, h("span.type", value.t),
        h("span.tools", fixed ? null : [nested && button("", edit, { kind: "quiet", glyph: "edit", title: `Edit ${name} as text` }),
          button("", () => this.remove(parent, path), { kind: "quiet", glyph: "trash", title: `Remove ${name}` })])),
      nested && opened && this.list(value, before?.t === value.t ? before : new Value(value.t, []), path));
  }

  form(parent, at, name, value, key) {
    const isObject = parent.t === "object";
    const nameInput = isObject && h("input", { value: name, "aria-label": "Name", size: 12 });
    const type = h("select", { "aria-label": "Type" }, TYPES.map((t) => h("option", { value: t, selected: t === value.t }, t)));
    const text = editable(value);
    const area = h("textarea.now", { rows: Math.min(12, text.split("\n").length + Math.floor(text.length / 90)), "aria-label": `Value of ${name}`, spellcheck: "false", value: text });
    const why = h("span.why", { role: "alert" });
    // A text area knows one kind of line break: what it made of the text isn't an edit.
    const first = area.value, isText = (type) => ["string", "code", "symbol"].includes(type);
    const isWindows = text.includes("\r") && !/\r(?!\n)|(?<!\r)\n/.test(text);
    if (isText(value.t) && text.includes("\r") && !isWindows) why.textContent = "It mixes line breaks; an edit here makes them all \\n. Text, above, keeps them.";
    const done = (event) => {
      event?.preventDefault();
      try {
        const isSame = type.value === value.t && area.value === first;
        const written = isWindows && isText(type.value) ? area.value.replaceAll("\n", "\r\n") : area.value;
        const made = isSame ? value : make(type.value, written);
        parent.v[at] = isObject ? [nameInput.value, made] : made;
      } catch (error) {
        why.textContent = error.message;
        area.setAttribute("aria-invalid", "true");
        return;
      }
      this.stop(key);
      this.changed();
    };
    const cancel = () => this.stop(key);
    return h("form", { onsubmit: done, onkeydown: (event) => {
      const ends = event.key === "Enter" && !event.shiftKey && (event.target !== area || event.ctrlKey || event.metaKey || !isNested({ t: type.value }));
      if (ends) { event.stopPropagation(); done(event); }
      if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); cancel(); }
    } }, nameInput || h("span.name", name), area, type,
    button("", done, { kind: "quiet.square", glyph: "plus", title: "Keep" }), button("", cancel, { kind: "quiet.square", glyph: "close", title: "Cancel" }), why);
  }

  stop(key) {
    this.editing = null;
    this.last = key;
    this.render();
    this.focus(key, ".value");
  }

  focus(key, what) {
    this.element.querySelector(`[data-path="${key}"]`)?.querySelector(what)?.focus();
  }

  /** Draws it anew; the keys, if they were here, go on where they were. */
  redraw() {
    const held = document.activeElement;
    const isHere = held === document.body || this.element.parentElement?.contains(held);
    this.render();
    if (!isHere) return;
    const buttons = "button.value, .fold, button";
    const last = this.element.querySelector(`[data-path="${this.last}"]`)?.querySelector(buttons);
    (last ?? this.element.querySelector(buttons))?.focus({ preventScroll: true });
  }

  add(value, path) {
    const at = value.v.length;
    value.v.push(value.t === "object" ? ["", NULL] : NULL);
    this.more.set(path.join("/"), at + 200);
    this.editing = [...path, at].join("/");
    this.render();
    const form = this.element.querySelector("form");
    (form?.querySelector("input") ?? form?.querySelector("textarea"))?.focus();
  }

  remove(parent, path) {
    const at = path.at(-1);
    parent.v.splice(at, 1);
    this.last = [...path.slice(0, -1), Math.min(at, parent.v.length - 1)].join("/");
    this.changed();
    this.redraw();
  }

  changed() {
    this.onchange(this);
  }

  discard() {
    this.draft = copy(this.original);
    this.editing = null;
    this.redraw();
    this.changed();
  }

  /** Writes what was edited; the draft is then the original. */
  async save(db, collection, command = run) {
    await saveDocument(db, collection, this.original, this.draft, command);
    this.original = copy(this.draft);
    this.redraw();
    this.changed();
  }
}

/** A string in quotes, cut where it is very long. */
function stringText(string) {
  if (string.length <= SHOWN_MAX) return visible(JSON.stringify(string));
  return `${visible(JSON.stringify(string.slice(0, SHOWN_MAX)))}… ${number(string.length)} characters`;
}

function earlier(before, value, name, at) {
  if (!before || before.t !== value.t) return undefined;
  return value.t === "object" ? before.get(name) : before.v[at];
}

/** How many values differ between two documents. */
export function countChanges(before, after) {
  if (same(before, after)) return 0;
  if (!before || !after || before.t !== after.t || !isNested(before) || before.t === "array" && before.v.length !== after.v.length) return 1;
  const names = before.t === "object" ? new Set([...before.v, ...after.v].map(([name]) => name)) : after.v.keys();
  let count = 0;
  for (const name of names) count += countChanges(before.get(name), after.get(name));
  return count || 1;
}

const isPlain = (name) => name !== "" && !name.includes(".") && !name.startsWith("$") && !/^\d+$/.test(name) && !name.includes("\0");

/** The update that makes one document of another, or null where the whole must be written. */
export function difference(before, after) {
  const set = [], unset = [];
  const unique = (value) => new Set(value.v.map(([name]) => name)).size === value.v.length;
  const walk = (old, now, path) => {
    if (same(old, now)) return true;
    if (old.t === "object" && now.t === "object") {
      if (!unique(old) || !unique(now)) return false;
      const kept = old.v.map(([name]) => name).filter((name) => now.get(name));
      const order = now.v.map(([name]) => name);
      const added = order.slice(kept.length);
      // Fields that are set where there were none come last: several of them sorted by name.
      if (added.length > 1 || kept.some((name, at) => order[at] !== name)) return false;
      for (const [name, value] of now.v) {
        const was = old.get(name);
        if (same(was, value)) continue;
        if (!isPlain(name)) return false;
        const inner = path ? `${path}.${name}` : name;
        if (!was) set.push([inner, value]);
        else {
          const [sets, unsets] = [set.length, unset.length];
          if (walk(was, value, inner)) continue;
          [set.length, unset.length] = [sets, unsets];
          set.push([inner, value]);
        }
      }
      for (const [name] of old.v) if (!now.get(name)) {
        if (!isPlain(name)) return false;
        unset.push([path ? `${path}.${name}` : name, of("")]);
      }
      return true;
    }
    if (old.t === "array" && now.t === "array" && old.v.length === now.v.length && path) {
      for (const [at, item] of now.v.entries()) {
        const inner = `${path}.${at}`;
        const [sets, unsets] = [set.length, unset.length];
        if (same(old.v[at], item) || walk(old.v[at], item, inner)) continue;
        [set.length, unset.length] = [sets, unsets];
        set.push([inner, item]);
      }
      return true;
    }
    if (!path) return false;
    set.push([path, now]);
    return true;
  };
  if (!walk(before, after, "")) return null;
  const update = [];
  if (set.length) update.push(["$set", new Value("object", set)]);
  if (unset.length) update.push(["$unset", new Value("object", unset)]);
  return new Value("object", update);
}

const literal = (value) => of({ $literal: value });

/** A condition that the fields that differ are still what they were. */
function unchanged(before, after) {
  const names = new Set([...before.v, ...after.v].map(([name]) => name));
  const conditions = [];
  for (const name of names) {
    if (name === "_id" || same(before.get(name), after.get(name))) continue;
    const stored = of({ $getField: { field: literal(of(name)), input: "$$ROOT" } });
    const old = before.get(name);
    conditions.push(old ? of({ $eq: [stored, literal(old)] }) : of({ $eq: [of({ $type: stored }), of("missing")] }));
  }
  return conditions;
}

/** Writes `after` over `before`. */
export async function saveDocument(db, collection, before, after, command = run) {
  const id = before.get("_id");
  if (!same(id, after.get("_id"))) throw new Error("_id can't change: clone the document instead");
  const update = difference(before, after);
  const all = update ? unchanged(before, after) : before.v.filter(([name]) => name !== "_id").map(([name, value]) =>
    of({ $eq: [of({ $getField: { field: literal(of(name)), input: "$$ROOT" } }), literal(value)] }));
  const q = of({ _id: of({ $eq: id }), $expr: { $and: all } });
  const answer = await command(db, { update: collection, updates: [of({ q, u: update ?? after })] });
  if (Number(answer.get("n").v) === 0) throw new Error("not saved: somebody else has changed or deleted this document meanwhile. Load it again to see what it is now");
}

/** The bar below an editor: save or discard. */
export function saveBar(editor, save) {
  const bar = h("div.save.row", { hidden: true });
  const update = () => {
    bar.hidden = !editor.isChanged;
    if (bar.hidden) return;
    const count = countChanges(editor.original, editor.draft);
    put(bar, h("span", { role: "status" }, count === 1 ? "1 change" : `${count} changes`), h("span.end"),
      button("Discard", () => editor.discard(), { kind: "quiet" }),
      button("Save", () => attempt(save), { kind: "primary" }));
  };
  return { bar, update, text: write };
}
