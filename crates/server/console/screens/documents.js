// The documents of a collection: filtered, sorted, as many as there are; one of them to be edited.
//
// Rows are fetched in pages as they come into view. The height of what scrolls is bounded, since
// browsers bound it: beyond that a pixel is more than a row's part.

import { ask as command, documents as fetchDocuments, run } from "../api.js";
import { ask, attempt, button, confirm, field, h, number, put, tell } from "../dom.js";
import { Editor, saveBar } from "../editor.js";
import { showFields } from "./fields.js";
import { head, isVersion, link, remember, writable } from "../main.js";
import { Value, brief, of, read, readDocument, same, show as text, visible, write } from "../values.js";

const ROW = 28, PAGE = 100, PAGES_KEPT = 60, HEIGHT_MAX = 16_000_000, COLUMNS_MAX = 60;

export async function show(place) {
  const screen = new Documents(place);
  await screen.load();
}

class Documents {
  constructor(place) {
    this.place = place;
    this.canWrite = writable() && !isVersion(place.version);
    this.read();
    this.build();
  }

  read() {
    const { query } = this.place;
    this.given = { filter: query.get("filter") ?? "", sort: query.get("sort") ?? "", project: query.get("project") ?? "" };
  }

  build() {
    const { place, given } = this;
    const input = (name, placeholder, more = {}) => h("input.mono", { name, value: given[name], placeholder, spellcheck: "false", autocomplete: "off", oninput: (event) => event.target.removeAttribute("aria-invalid"), ...more });
    this.inputs = { filter: input("filter", "{ price: { $gt: 10 } }", { "data-key": "/" }), sort: input("sort", "{ price: -1 }"), project: input("project", "{ name: 1 }") };
    this.count = h("span.soft.small", { role: "status" }, "…");
    this.titles = h("div.titles", { role: "row" });
    this.rows = h("div.rows", { role: "rowgroup" });
    this.grid = h("div.grid", { role: "grid", "aria-label": `Documents of ${place.collection}`, tabindex: -1 }, h("div", { role: "rowgroup" }, this.titles), this.rows);
    this.panel = h("section.panel", { "aria-label": "Document", hidden: true });
    this.split = h("div.split", this.grid, this.panel);
    this.grid.addEventListener("scroll", () => this.draw(), { passive: true });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.grid);
    put(place.main, h("div.page.fill",
      h("div.stack", head(place, "documents", this.count,
        this.canWrite && (this.maker = button("New document", () => this.insert(), { glyph: "plus" })),
        button("Fields", () => this.fields(), { kind: "quiet", title: "What the fields hold, from a sample" }),
        button("", () => this.load(), { kind: "quiet.square", glyph: "refresh", title: "Load again" }))),
      h("form.filter", { onsubmit: (event) => { event.preventDefault(); this.load(); } },
        field("Filter", this.inputs.filter), field("Sort", this.inputs.sort), field("Fields", this.inputs.project), h("button", { type: "submit" }, "Find")),
      this.split));
    this.maker?.setAttribute("data-key", "n");
  }

  parse() {
    const parsed = {};
    for (const [name, input] of Object.entries(this.inputs)) {
      try {
        parsed[name] = readDocument(input.value);
      } catch (error) {
        input.setAttribute("aria-invalid", "true");
        input.focus();
        throw new Error(`${name}: ${error.message}`);
      }
    }
    return parsed;
  }

  async load() {
    const { place, inputs } = this;
    const parsed = await attempt(() => this.parse());
    if (!parsed) return;
    remember({ filter: inputs.filter.value, sort: inputs.sort.value, project: inputs.project.value });
    this.query = parsed;
    this.pages = new Map();
    this.fetching = new Map();
    this.columns = [];
    this.current = 0;
    this.total = 0;
    this.grid.scrollTop = 0;
    this.count.textContent = "…";
    this.isRefused = false;
    const counted = command(place.name, { count: place.collection, query: parsed.filter }, place);
    // What the server refuses is told once, by the first page.
    counted.catch(() => {});
    // Where the whole takes long to count, the first page is there before.
    const first = await attempt(() => this.page(0));
    if (!first) { this.isRefused = true; this.count.textContent = ""; this.draw(); return; }
    this.total = Math.max(this.total, first.length);
    this.findColumns(first);
    this.draw();
    const result = await attempt(() => counted);
    if (!result) return;
    this.total = Math.max(result.n, first.length < PAGE ? first.length : 0);
    this.count.textContent = `${number(this.total)} ${this.total === 1 ? "document" : "documents"}`;
    this.draw();
  }

  page(at) {
    if (this.pages.has(at)) {
      const page = this.pages.get(at);
      this.pages.delete(at);
      this.pages.set(at, page);
      return page;
    }
    if (!this.fetching.has(at)) {
      const { place, query, pages } = this;
      const find = { find: place.collection, filter: query.filter, skip: at * PAGE, limit: PAGE };
      if (query.sort.v.length) find.sort = query.sort;
      if (query.project.v.length) find.projection = query.project;
      const fetched = fetchDocuments(place.name, find, { max: PAGE, signal: place.signal }).then(({ documents }) => {
        pages.set(at, documents);
        if (pages.size > PAGES_KEPT) pages.delete(pages.keys().next().value);
        return documents;
      }).finally(() => this.fetching.delete(at));
      this.fetching.set(at, fetched);
    }
    return this.fetching.get(at);
  }

  findColumns(documents) {
    const names = new Set(this.columns);
    for (const document of documents) {
      for (const [name] of document.v) {
        if (names.size >= COLUMNS_MAX) break;
        names.add(name);
      }
    }
    if (names.size === this.columns.length) return;
    this.columns = [...names];
    this.grid.setAttribute("aria-colcount", this.columns.length + 1);
    put(this.titles, h("div.cell.place", { role: "columnheader" }, "#"),
      this.columns.map((name) => h("div.cell", { role: "columnheader", dir: "auto", title: name }, name === "" ? "(no name)" : visible(name))));
    this.drawn = "";
  }

  /** Which row is at the top: where there are more than fit, by how far one has scrolled. */
  get height() { return Math.min(this.total * ROW, HEIGHT_MAX); }
  get view() { return Math.max(1, this.grid.clientHeight - 30); }
  get top() {
    const whole = this.total * ROW;
    if (whole <= HEIGHT_MAX) return this.grid.scrollTop;
    return this.grid.scrollTop / Math.max(1, this.height - this.view) * (whole - this.view);
  }

  draw() {
    this.rows.style.height = `${this.height}px`;
    this.grid.setAttribute("aria-rowcount", this.total + 1);
    const top = this.top, first = Math.max(0, Math.floor(top / ROW) - 6);
    const last = Math.min(this.total, Math.ceil((top + this.view) / ROW) + 6);
    const offset = this.grid.scrollTop - top;
    const held = document.activeElement?.closest?.(".line") ? true : false;
    const lines = [];
    const wanted = new Set();
    for (let at = first; at < last; at++) {
      const page = this.pages?.get(Math.floor(at / PAGE));
      if (!page) wanted.add(Math.floor(at / PAGE));
      lines.push(this.line(at, page?.[at % PAGE], at * ROW + offset));
    }
    put(this.rows, lines);
    if (this.total === 0) put(this.rows, h("p.empty", this.fetching?.size ? "…" : this.isRefused ? "The server refused this query." : "No documents."));
    if (held) this.rows.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
    clearTimeout(this.later);
    if (wanted.size) this.later = setTimeout(() => {
      for (const page of wanted) attempt(async () => { this.findColumns(await this.page(page)); this.draw(); });
    }, 40);
  }

  line(at, document, top) {
    const cells = this.columns.map((name) => {
      const value = document?.get(name);
      return value ? h(`div.cell.t-${value.t}`, { role: "gridcell", dir: "auto" }, brief(value, 60)) : h("div.cell.missing", { role: "gridcell" }, document ? "" : "…");
    });
    const line = h("div.line", { role: "row", "aria-rowindex": at + 2, tabindex: at === this.current ? 0 : -1, "aria-selected": String(at === this.opened), onclick: () => this.open(at) },
      h("div.cell.place", { role: "rowheader" }, number(at + 1)), cells);
    line.style.top = `${top}px`;
    return line;
  }

  key(event) {
    if (!event.target.closest(".line")) return;
    const step = Math.max(1, Math.floor(this.view / ROW) - 1);
    const to = { ArrowDown: this.current + 1, ArrowUp: this.current - 1, PageDown: this.current + step, PageUp: this.current - step, Home: 0, End: this.total - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.focus(Math.max(0, Math.min(this.total - 1, to)));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.open(this.current);
    } else if (event.key === "Delete" && this.canWrite) {
      event.preventDefault();
      const document = this.at(this.current);
      if (document) this.remove(document);
    }
  }

  at(row) { return this.pages.get(Math.floor(row / PAGE))?.[row % PAGE]; }

  focus(row) {
    this.current = row;
    const whole = this.total * ROW, y = row * ROW;
    let top = this.top;
    if (y < top) top = y;
    else if (y + ROW > top + this.view) top = y + ROW - this.view;
    this.grid.scrollTop = whole <= HEIGHT_MAX ? top : top / (whole - this.view) * (this.height - this.view);
    this.draw();
    this.rows.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  }

  async open(row) {
    if (this.editor?.isChanged && !await confirm("Discard the changes?", "The open document has changes that aren't saved.", "Discard")) return;
    const shown = this.at(row);
    if (!shown) return;
    this.current = row;
    // A projection may have left fields out: the whole is read again.
    const id = shown.get("_id");
    let whole = shown;
    if (id) {
      const found = await attempt(() => fetchDocuments(this.place.name, { find: this.place.collection, filter: { _id: of({ $eq: id }) }, limit: 1 }));
      if (!found) return;
      whole = found.documents[0];
      if (!whole) { tell("the document is gone", { error: true }); return; }
    }
    this.opened = row;
    this.edit(whole, row);
    this.draw();
  }

  edit(document, row) {
    const { place, panel } = this;
    const id = document.get("_id");
    const readOnly = !this.canWrite || !id;
    const save = async () => {
      await this.editor.save(place.name, place.collection);
      tell("Saved");
      const page = this.pages.get(Math.floor(row / PAGE));
      if (page && same(page[row % PAGE]?.get("_id"), id)) page[row % PAGE] = this.editor.original;
      this.draw();
    };
    const editor = this.editor = new Editor(document, { readOnly, onchange: () => bar.update() });
    const bar = saveBar(editor, save);
    const close = () => { panel.hidden = true; this.split.classList.remove("open"); this.opened = undefined; this.editor = null; this.draw(); this.rows.querySelector("[tabindex='0']")?.focus({ preventScroll: true }); };
    panel.onkeydown = (event) => {
      if (event.key === "Escape" && !editor.isChanged) close();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && editor.isChanged) { event.preventDefault(); attempt(save); }
    };
    put(panel, h("div.head", h("h2.mono", brief(id ?? of("document"), 40)), h("span.end"),
      id && h("a.button.quiet.square", { href: link(["db", place.name, "document", place.collection], { id: write(id) }), title: "History and blame", "aria-label": "History and blame" }, "⟲"),
      !readOnly && button("Text", () => this.asText(document, row), { kind: "quiet", title: "Edit as text" }),
      button("", () => navigator.clipboard?.writeText(text(editor.draft)).then(() => tell("Copied")), { kind: "quiet.square", glyph: "copy", title: "Copy as text" }),
      this.canWrite && button("Clone", () => this.insert(editor.draft), { kind: "quiet" }),
      !readOnly && button("", () => this.remove(document), { kind: "quiet.square", glyph: "trash", title: "Delete" }),
      button("", close, { kind: "quiet.square", glyph: "close", title: "Close" })), editor.element, bar.bar);
    panel.setAttribute("aria-label", "Document");
    panel.hidden = false;
    this.split.classList.add("open");
    editor.element.querySelector("button.value, .fold")?.focus({ preventScroll: true });
  }

  /** What the fields hold, where a document is shown otherwise. */
  async fields() {
    if (this.editor?.isChanged && !await confirm("Discard the changes?", "The open document has changes that aren't saved.", "Discard")) return;
    const parsed = await attempt(() => this.parse());
    if (!parsed) return;
    const { panel } = this;
    this.editor = null;
    this.opened = undefined;
    const close = () => { panel.hidden = true; this.split.classList.remove("open"); this.draw(); };
    panel.onkeydown = (event) => { if (event.key === "Escape") close(); };
    const box = h("div.page");
    put(panel, h("div.head", h("h2", "Fields"), h("span.end"), button("", close, { kind: "quiet.square", glyph: "close", title: "Close" })), box);
    panel.setAttribute("aria-label", "Fields");
    panel.hidden = false;
    this.split.classList.add("open");
    this.draw();
    // A bar that was pressed is gone: the keys stay here.
    panel.querySelector("button").focus({ preventScroll: true });
    const take = async (filter) => { this.inputs.filter.value = filter; await this.load(); if (!panel.hidden) await this.fields(); };
    if (!await attempt(async () => { await showFields(box, this.place, parsed.filter, take); return true; })) close();
  }

  async asText(document, row) {
    const edited = await ask("Edit as text", () => {
      const area = h("textarea", { rows: 22, spellcheck: "false", value: text(this.editor.draft), "aria-label": "Document" });
      return { body: area, take: () => readDocument(area.value) };
    }, { agree: "Take over", wide: true });
    if (!edited) return;
    this.edit(document, row);
    this.editor.draft = edited;
    this.editor.render();
    this.editor.changed();
  }

  async insert(from) {
    const { place } = this;
    const start = from ? text(new Value("object", from.v.filter(([name]) => name !== "_id"))) : "{\n  \n}";
    const done = await ask(from ? "Clone" : "New document", () => {
      const area = h("textarea", { rows: 18, spellcheck: "false", value: start, "aria-label": "Documents" });
      // What is typed at once belongs between the braces.
      if (!from) area.addEventListener("focus", () => area.setSelectionRange(4, 4), { once: true });
      return {
        body: h("div.stack", area, h("p.hint", "A document, or an array of several. Without _id each gets an ObjectId.")),
        take: async () => {
          const given = area.value.trim().startsWith("[") ? read(area.value).v : [readDocument(area.value)];
          const answer = await run(place.name, { insert: place.collection, documents: given });
          return answer.get("n").v;
        },
      };
    }, { agree: "Insert", wide: true });
    if (!done) return;
    tell(`Inserted ${done}`);
    this.load();
  }

  async remove(document) {
    const { place } = this;
    const id = document.get("_id");
    if (!await confirm("Delete the document?", brief(id), "Delete")) return;
    const done = await attempt(() => run(place.name, { delete: place.collection, deletes: [of({ q: of({ _id: of({ $eq: id }) }), limit: 1 })] }));
    if (!done) return;
    this.panel.hidden = true;
    this.split.classList.remove("open");
    this.editor = null;
    this.opened = undefined;
    tell("Deleted", { action: { label: "Undo", run: async () => { await attempt(() => run(place.name, { insert: place.collection, documents: [document] })); this.load(); } } });
    this.load();
  }
}
