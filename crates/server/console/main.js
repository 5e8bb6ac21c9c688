// The console's frame: where one is (the address after #), the list of databases, logins, keys.
//
// An address is #/db/SHOP@BRANCH/SCREEN?…; each screen below screens/ is loaded when it is first
// shown, and exports show(place): it fills `place.main`, and stops what it began when
// `place.signal` says so.

import { ask as command, logIn, logOut, onLoginNeeded, session } from "./api.js";
import { ask, attempt, button, field, h, icon, put, roving, tell } from "./dom.js";

const top = document.getElementById("top");
const side = document.getElementById("side");
const main = document.getElementById("main");

export const state = { session: null, databases: [], branches: [], collections: [], dirty: new Map() };

/** The address of a screen. */
export function link(path, query = {}) {
  const parts = path.map(encodeURIComponent).join("/");
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#/${parts}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

/** Goes to a screen. */
export const go = (path, query) => { location.hash = link(path, query); };

/** Changes what stands after ? without going anywhere. */
export function remember(query) {
  const { path } = where();
  history.replaceState(null, "", link(path, query));
}

function where() {
  const [path, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  let parts;
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    parts = [];
  }
  return { path: parts, query: new URLSearchParams(query) };
}

/** The database and the version in a name: shop@sale. */
export function split(name) {
  const at = name.indexOf("@");
  return at < 0 ? { database: name, version: "" } : { database: name.slice(0, at), version: name.slice(at + 1) };
}

/** As the server takes it: a branch may have a slash, or a dot. */
export const version = (database, branch) => branch ? `${database}@${branch.replaceAll("%", "%25").replaceAll("/", "%2F").replaceAll(".", "%2E")}` : database;

const SCREENS = {
  "": "start", log: "log", diff: "diff", proposals: "proposals", merge: "merge", collections: "collections",
  documents: "documents", document: "document", aggregate: "aggregate", explain: "explain",
  indexes: "indexes", metrics: "metrics", settings: "settings", upkeep: "upkeep", users: "users",
};

let leaving = new AbortController();

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const held = document.activeElement;
  document.body.classList.remove("sided");
  if (!state.session) return;
  if (state.session.auth && !state.session.user) return showLogin();
  const { path, query } = where();
  const place = { main, path, query, signal, name: "", database: "", version: "", collection: "" };
  let screen = path[0] ?? "";
  if (screen === "db" && path[1]) {
    place.name = path[1];
    Object.assign(place, split(path[1]));
    screen = path[2] ?? "collections";
    place.collection = path[3] ?? "";
  }
  await showSide(place);
  if (signal.aborted) return;
  const file = Object.hasOwn(SCREENS, screen) ? SCREENS[screen] : "start";
  document.title = [place.collection || screen, place.name, "Frond"].filter(Boolean).join(" · ");
  try {
    const { show } = await import(`./screens/${file}.js`);
    if (signal.aborted) return;
    main.scrollTop = 0;
    await show(place);
    // What had the focus may be gone with the screen before: the keys go on within the new one.
    if (!held.isConnected && document.activeElement === document.body) main.focus({ preventScroll: true });
  } catch (error) {
    if (signal.aborted || error.name === "AbortError" || error.status === 401) return;
    put(main, h("div.page", h("h1", "That didn't work"), h("p.why", error.message),
      h("div.row", button("Try again", show, { glyph: "refresh" }), h("a.button", { href: "#/" }, "All databases"))));
  }
}

/** Shows the screen again, and what stands beside it. */
export const refresh = () => show();

/** The head of a screen of a database. */
export function head(place, tab, ...more) {
  const { name, database, version: at, collection } = place;
  const root = ["db", name];
  const tabs = collection
    ? [["documents", "Documents"], ["aggregate", "Aggregate"], ["explain", "Explain"], ["indexes", "Indexes"]]
    : [["collections", "Collections"], ["log", "History"], ["diff", "Changes"], ["proposals", "Proposals"], ["merge", "Merge"], ["settings", "Settings"]];
  const branches = h("select", { "aria-label": "Branch", onchange: (event) => go(["db", version(database, event.target.value), ...place.path.slice(2)], Object.fromEntries(place.query)) },
    state.branches.map((branch) => h("option", { value: branch.branch === state.standard ? "" : branch.branch, selected: (branch.branch === state.standard ? "" : branch.branch) === decode(at) }, branch.branch)),
    isVersion(at) && h("option", { value: decode(at), selected: true }, `${decode(at)} (a version)`));
  return [
    h("div.head",
      h("h1.crumbs", h("a", { href: link(root) }, database), collection && [h("span.soft", "/"), h("span", collection)]),
      icon("branch"), branches,
      state.dirty.get(name) && !collection && h("a.badge.changed", { href: link([...root, "diff"]) }, "uncommitted changes"),
      h("span.end"), ...more),
    h("nav.tabs", { "aria-label": collection ? "Collection" : "Database" }, tabs.map(([screen, title]) =>
      h("a", { href: link(collection ? [...root, screen, collection] : [...root, screen]), "aria-current": screen === tab ? "page" : false }, title))),
  ];
}

function decode(at) {
  try { return decodeURIComponent(at); } catch { return at; }
}
/** Whether a name leads to what can only be read: no branch. */
export const isVersion = (at) => Boolean(at) && !state.branches.some((branch) => branch.branch === decode(at));
/** The branch that a place shows. */
export const branchOf = (place) => decode(place.version) || state.standard;

async function showSide(place) {
  const listed = await attempt(() => command("admin", { listDatabases: 1, nameOnly: true }));
  state.databases = (listed?.databases ?? []).map((it) => it.name).sort();
  state.branches = [];
  state.collections = [];
  if (place.database && state.databases.includes(place.database)) {
    const [branches, status, collections] = await Promise.all([
      command(place.database, { frondBranch: 1 }).catch(() => null),
      command(place.name, { frondStatus: 1 }).catch(() => null),
      command(place.name, { listCollections: 1, nameOnly: true, authorizedCollections: true, cursor: { batchSize: 10000 } }).catch(() => null),
    ]);
    state.branches = branches?.branches ?? [];
    const own = await (place.version ? command(place.database, { frondStatus: 1 }).catch(() => null) : status);
    state.standard = own?.branch ?? "main";
    if (status) state.dirty.set(place.name, status.dirty);
    state.status = status;
    state.collections = (collections?.cursor.firstBatch ?? []).filter((it) => !it.name.startsWith("system.")).map((it) => it.name).sort();
  }
  const at = (...path) => link(path);
  const current = (is) => is ? "page" : false;
  put(side,
    h("h2", "Databases", h("span.end"), writable() && button("", newDatabase, { kind: "quiet.square", glyph: "plus", title: "New database" })),
    h("ul", state.databases.map((name) => h("li",
      h("a", { href: at("db", name), "aria-current": current(place.database === name && !place.collection) }, icon("database"), h("span", { dir: "auto" }, name),
        state.dirty.get(name) && h("i.dot", { title: "uncommitted changes" })),
      name === place.database && h("ul", state.collections.map((collection) => h("li",
        h("a", { href: at("db", place.name, "documents", collection), "aria-current": current(place.collection === collection) }, icon("table"), h("span", { dir: "auto", title: collection }, collection)))))))),
    h("h2", "Server"),
    h("ul", h("li", h("a", { href: at("metrics"), "aria-current": current(place.path[0] === "metrics") }, icon("gauge"), h("span", "Metrics and operations"))),
      h("li", h("a", { href: at("users"), "aria-current": current(place.path[0] === "users") }, icon("users"), h("span", "Users and roles"))),
      h("li", h("a", { href: at("upkeep"), "aria-current": current(place.path[0] === "upkeep") }, icon("database"), h("span", "Space and backups")))));
}

/** Whether this console may change anything. */
export const writable = () => !state.session?.readOnly;

async function newDatabase() {
  const made = await ask("New database", () => {
    const name = h("input", { required: true, autocomplete: "off" });
    const collection = h("input", { required: true, autocomplete: "off" });
    return {
      body: h("div.stack", field("Name", name), field("First collection", collection)),
      take: async () => { await command(name.value, { create: collection.value }); return name.value; },
    };
  }, { agree: "Create" });
  if (made) go(["db", made]);
}

function showTop() {
  const { session } = state;
  put(top,
    button("", () => document.body.classList.toggle("sided"), { kind: "quiet.square.menu", glyph: "menu", title: "Databases" }),
    h("a.brand", { href: "#/" }, h("img", { src: "/icon.svg", alt: "" }), "Frond"),
    session?.readOnly && h("span.badge", "reads only"),
    h("span.end"),
    h("button.quiet.square", { type: "button", onclick: showKeys, title: "Keys", "aria-label": "Keys" }, "?"),
    session?.user ? h("div.who", h("span.soft.small", `${session.user}@${session.database}`),
      button("Log out", async () => { state.session = await attempt(logOut) ?? state.session; showTop(); show(); }, { kind: "quiet" }))
      : session && !session.auth && h("span.badge", { title: "started without --auth" }, "no logins"));
}

function showLogin(words = "") {
  put(side);
  const user = h("input", { name: "user", autocomplete: "username", required: true, autofocus: true });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password" });
  const database = h("input", { name: "database", value: "admin", autocomplete: "off" });
  const why = h("p.why", { role: "alert" }, words);
  const submit = h("button.primary", { type: "submit" }, "Log in");
  put(main, h("div.login", h("form.card", {
    onsubmit: async (event) => {
      event.preventDefault();
      why.textContent = "";
      submit.disabled = true;
      try {
        state.session = await logIn(user.value, password.value, database.value);
        showTop();
        show();
      } catch (error) {
        why.textContent = error.message;
        submit.disabled = false;
        password.select();
      }
    },
  }, h("h1", "Log in"), field("User", user), field("Password", password), field("Database of the user", database), why, submit)));
  document.title = "Log in · Frond";
  user.focus();
}

onLoginNeeded(() => {
  if (!state.session?.user) return;
  state.session.user = null;
  leaving.abort();
  showTop();
  showLogin("The login has ended.");
});

const KEYS = [["Ctrl K", "Go anywhere by name"], ["g then d", "Databases"], ["g then c", "Collections"], ["g then l", "History"], ["g then w", "Changes of the working state"], ["g then p", "Proposals"], ["g then m", "Merge"], ["g then s", "Metrics"],
  ["/", "Filter"], ["n", "New document"], ["↑ ↓ Enter", "Move in lists, open"], ["Enter, F2", "Edit a value"], ["Ctrl Enter", "Save"], ["1 2 3", "Ours, theirs, base of a conflict; e edits"], ["Esc", "Close"], ["?", "These keys"]];

function showKeys() {
  ask("Keys", () => ({
    body: h("div.scroll", h("table", h("tbody", KEYS.map(([key, what]) => h("tr", h("td", key.split(" ").map((it) => it === "then" ? " then " : [h("kbd", it), " "])), h("td", what)))))),
    take: () => true,
  }), { agree: "Close" });
}

/** Goes anywhere by a few letters of its name. */
function showPalette() {
  const { path } = where();
  const name = path[0] === "db" ? path[1] : "";
  const { database } = split(name);
  const places = [
    ...state.collections.map((it) => [it, "collection", ["db", name, "documents", it]]),
    ...state.branches.map((it) => [it.branch, "branch", ["db", version(database, it.branch === state.standard ? "" : it.branch)]]),
    ...(name ? [["Collections", ""], ["History", "log"], ["Changes", "diff"], ["Proposals", "proposals"], ["Merge", "merge"], ["Settings", "settings"]].map(([title, screen]) => [title, name, ["db", name, screen].filter(Boolean)]) : []),
    ...state.databases.map((it) => [it, "database", ["db", it]]),
    ["Databases", "server", []], ["Metrics and operations", "server", ["metrics"]], ["Users and roles", "server", ["users"]], ["Space and backups", "server", ["upkeep"]],
  ];
  ask("Go to", () => {
    const list = h("div.palette");
    const find = h("input", { "aria-label": "Name", autocomplete: "off", oninput: () => fill(), onkeydown: (event) => { if (event.key === "ArrowDown") { event.preventDefault(); list.querySelector("a")?.focus(); } } });
    const found = () => places.filter(([title]) => title.toLowerCase().includes(find.value.trim().toLowerCase())).slice(0, 60);
    const close = () => list.closest("dialog").close();
    const fill = () => put(list, found().map(([title, kind, path]) => h("a", { href: link(path), onclick: close }, title, h("span.soft.small", kind))));
    fill();
    roving(list, "a");
    return { body: h("div.stack", find, list), take: () => { const [first] = found(); if (!first) throw new Error("there is nothing of that name"); go(first[2]); } };
  }, { agree: "Go" });
}

let pending = "";
document.addEventListener("keydown", (event) => {
  const { target } = event;
  if (event.key === "k" && (event.ctrlKey || event.metaKey) && state.session && !target.closest("dialog")) {
    event.preventDefault();
    showPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
  const { path } = where();
  const root = path[0] === "db" ? path.slice(0, 2) : null;
  const jump = { d: [], s: ["metrics"], c: root, l: root && [...root, "log"], w: root && [...root, "diff"], p: root && [...root, "proposals"], m: root && [...root, "merge"] };
  if (pending === "g") {
    pending = "";
    if (jump[event.key]) { event.preventDefault(); go(jump[event.key]); return; }
  }
  if (event.key === "g") pending = "g";
  else if (event.key === "?") showKeys();
  else if (event.key === "/") {
    const input = main.querySelector("[data-key='/']");
    if (input) { event.preventDefault(); input.focus(); }
  } else if (event.key === "n") {
    const made = main.querySelector("[data-key='n']");
    if (made) { event.preventDefault(); made.click(); }
  }
});

addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
roving(side, "a");
addEventListener("unhandledrejection", (event) => { if (event.reason?.name !== "AbortError") tell(event.reason?.message ?? String(event.reason), { error: true }); });

(async () => {
  showTop();
  state.session = await attempt(session);
  showTop();
  if (state.session) show();
  else put(main, h("div.page", h("p.why", "The server doesn't answer."), button("Try again", () => location.reload())));
})();
