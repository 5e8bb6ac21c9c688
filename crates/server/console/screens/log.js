// The history of a database: commits as a graph, newest first, and what each changed.
//
// Each commit gets a lane: that of its first child, if it is the child's first parent, else a free
// one. All branches are walked together, in the order of time that frondLog gives for each.

import { ask as command } from "../api.js";
import { ask, attempt, button, confirm, field, h, icon, put, roving, s, tell, time } from "../dom.js";
import { branchOf, go, head, isVersion, link, refresh, state, version, writable } from "../main.js";

const ROW = 46, STEP = 14, LIMIT = 200, LANES_MAX = 12, BADGES_MAX = 3;

export async function show(place) {
  const whole = place.query.get("all") === "1";
  const names = whole ? state.branches.map((it) => it.branch) : [branchOf(place)];
  const [logs, tags] = await Promise.all([
    Promise.all(names.slice(0, 40).map((range) => command(place.name, { frondLog: 1, range, limit: LIMIT }, place).catch((error) => {
      if (whole) return { commits: [] };
      throw error;
    }))),
    command(place.name, { frondTag: 1 }, place).catch(() => ({ tags: [] })),
  ]);
  const commits = order(logs.flatMap((it) => it.commits));
  const refs = new Map();
  const refer = (id, badge) => refs.set(id, [...refs.get(id) ?? [], badge]);
  for (const it of state.branches) if (it.commitId) refer(it.commitId, h("span.badge.branch", icon("branch"), it.branch));
  for (const it of tags.tags) refer(it.commitId, h("span.badge", it.tag));
  const lanes = assign(commits);
  const width = Math.min(LANES_MAX, Math.max(1, ...lanes.map((it) => it.lane + 1)));
  const detail = h("section.panel", { "aria-label": "Commit", hidden: true });
  const list = h("div.log", drawing(lanes, width), h("ol", commits.map((commit) => h("li",
    h("a.commit", { href: "#", "data-id": commit.commitId, onclick: (event) => { event.preventDefault(); open(commit); } }, h("span"),
      h("span.subject", few(refs.get(commit.commitId) ?? []), h("span", commit.message.split("\n")[0] || "(no message)")),
      h("span.soft.small.meta", commit.author, " · ", time(commit.timestamp)))))));
  list.style.setProperty("--lanes", `${width * STEP + 8}px`);
  roving(list, ".commit");
  const split = h("div.split", h("div.scroll", commits.length ? list : h("p.empty", "No commits yet.")), detail);
  put(place.main, h("div.page.fill",
    h("div.stack", head(place, "log", button("All branches", () => go(place.path, { all: whole ? "" : "1" }), { pressed: whole }),
      writable() && button("New branch", () => newBranch(place), { glyph: "plus" }),
      writable() && !isVersion(place.version) && button("Undo", () => undo(place), { kind: "quiet", title: "Take back the last thing that moved this branch" }))),
    status(place), split));

  function open(commit) {
    for (const it of list.querySelectorAll("[aria-current]")) it.removeAttribute("aria-current");
    list.querySelector(`[data-id="${commit.commitId}"]`)?.setAttribute("aria-current", "true");
    detail.hidden = false;
    split.classList.add("open");
    const close = () => { detail.hidden = true; split.classList.remove("open"); list.querySelector(`[data-id="${commit.commitId}"]`)?.focus(); };
    detail.onkeydown = (event) => { if (event.key === "Escape") close(); };
    const counts = h("div.stack.small", "…");
    const at = version(place.database, commit.commitId);
    const parent = commit.parents[0];
    put(detail, h("div.head", h("h2", "Commit"), h("code", commit.commitId.slice(0, 10)), h("span.end"), button("", close, { kind: "quiet.square", glyph: "close", title: "Close" })),
      h("div.page", h("p.wrap", commit.message),
        h("dl.facts.small", fact("Author", commit.author), fact("Time", commit.timestamp.toISOString()), fact("Id", h("code", commit.commitId)),
          fact(commit.parents.length > 1 ? "Parents" : "Parent", commit.parents.map((id) => h("code", id.slice(0, 10), " ")))),
        h("div.row", h("a.button", { href: link(["db", place.name, "diff"], { from: parent ?? "NOTHING", to: commit.commitId }) }, "What it changed"),
          h("a.button", { href: link(["db", at]) }, "Look at it"),
          writable() && button("Branch here", () => newBranch(place, commit.commitId), { kind: "quiet" }),
          writable() && button("Tag", () => newTag(place, commit.commitId), { kind: "quiet" }),
          writable() && !isVersion(place.version) && [
            button("Pick", () => act(place, "frondCherryPick", commit), { kind: "quiet", title: "Apply its changes to this branch" }),
            button("Revert", () => act(place, "frondRevert", commit), { kind: "quiet", title: "Undo its changes by a new commit" }),
            button("Reset", () => reset(place, commit), { kind: "quiet", title: "Move this branch here" })]),
        counts, commandLines(place, commit)));
    detail.querySelector("a.button")?.focus();
    command(place.name, { frondShow: 1, target: commit.commitId }, place).then((shown) => put(counts, shown.collections.length ? shown.collections.map((it) =>
      h("div", h("strong", it.collection), " ", [["+", "added"], ["~", "modified"], ["−", "removed"]].filter(([, kind]) => it[kind]).map(([sign, kind]) => [h(`span.sign.${kind}`, sign), `${it[kind]} `]))) : "It changed nothing."))
      .catch((error) => put(counts, error.message));
  }
}

/** The first of the names of a commit, and how many others it has. */
const few = (badges) => badges.length <= BADGES_MAX ? badges
  : [...badges.slice(0, BADGES_MAX), h("span.badge", { title: badges.slice(BADGES_MAX).map((it) => it.textContent).join(", ").slice(0, 1000) }, `+${badges.length - BADGES_MAX}`)];

/** The same acts at a command line, to be copied. */
function commandLines(place, commit) {
  const id = commit.commitId.slice(0, 12), name = quoted(place.name);
  const own = isVersion(place.version) ? [] : [["Pick", `cherry-pick ${name} ${id}`], ["Revert", `revert ${name} ${id}`], ["Reset", `reset ${name} ${id}`], ["Undo", `undo ${name}`]];
  const lines = [["What it changed", `show ${name} ${id}`], ["Branch here", `branch ${quoted(place.database)} NAME ${id}`], ["Tag", `tag ${quoted(place.database)} NAME ${id}`], ...own];
  return h("details", h("summary", "At the command line"), h("dl.lines.small", lines.map(([what, line]) => h("div", h("dt", what),
    h("dd", h("code", `frond ${line}`), button("", () => navigator.clipboard?.writeText(`frond ${line}`).then(() => tell("Copied")), { kind: "quiet.square", glyph: "copy", title: `Copy: ${what}` }))))));
}

/** A name as a shell takes it. */
const quoted = (name) => /^[\w@%.+-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;

const fact = (name, value) => h("div", h("dt", name), h("dd", value));

function status(place) {
  if (!state.dirty.get(place.name)) return h("span.hidden");
  return h("a.card.row", { href: link(["db", place.name, "diff"]) }, h("span.badge.changed", "~"), "Uncommitted changes: look at them and commit");
}

/** Children before parents, and the newest first among those that may come next. */
export function order(commits) {
  const known = new Map(commits.map((it) => [it.commitId, it]));
  const children = new Map();
  for (const commit of known.values()) for (const parent of commit.parents) if (known.has(parent)) children.set(parent, (children.get(parent) ?? 0) + 1);
  const ready = [...known.values()].filter((it) => !children.get(it.commitId));
  const sorted = [];
  while (ready.length) {
    ready.sort((one, other) => one.timestamp - other.timestamp);
    const commit = ready.pop();
    sorted.push(commit);
    for (const parent of commit.parents) {
      if (!known.has(parent)) continue;
      children.set(parent, children.get(parent) - 1);
      if (!children.get(parent)) ready.push(known.get(parent));
    }
  }
  return sorted;
}

/** The lane of each commit, and the lines that go on below it. */
export function assign(commits) {
  const lanes = [];
  const free = () => { const at = lanes.indexOf(undefined); return at < 0 ? lanes.length : at; };
  return commits.map((commit) => {
    let lane = lanes.indexOf(commit.commitId);
    if (lane < 0) lane = free();
    const before = [...lanes];
    lanes.forEach((id, at) => { if (id === commit.commitId) lanes[at] = undefined; });
    const [first, ...others] = commit.parents;
    lanes[lane] = undefined;
    if (first) {
      const there = lanes.indexOf(first);
      if (there < 0 || lane < there) { if (there >= 0) lanes[there] = undefined; lanes[lane] = first; }
    }
    for (const other of others) if (!lanes.includes(other)) lanes[free()] = other;
    return { commit, lane, before, after: [...lanes] };
  });
}

function drawing(rows, width) {
  const svg = s("svg.lanes", { width: width * STEP + 8, height: rows.length * ROW, "aria-hidden": "true" });
  const x = (lane) => Math.min(lane, LANES_MAX - 1) * STEP + 8;
  rows.forEach(({ commit, lane, before, after }, at) => {
    const y = at * ROW, middle = y + ROW / 2;
    const line = (from, to, y1, y2, color) => svg.append(s(`path.lane.lane-${color % 6}`, { d: from === to ? `M${x(from)} ${y1}V${y2}` : `M${x(from)} ${y1}C${x(from)} ${(y1 + y2) / 2} ${x(to)} ${(y1 + y2) / 2} ${x(to)} ${y2}` }));
    before.forEach((id, from) => {
      if (!id) return;
      if (id === commit.commitId) { line(from, lane, y, middle, from); return; }
      const to = after[from] === id ? from : after.indexOf(id);
      line(from, from, y, middle, from);
      if (to >= 0) line(from, to, middle, y + ROW, to);
    });
    for (const parent of commit.parents) {
      const to = after.indexOf(parent);
      if (to >= 0) line(lane, to, middle, y + ROW, to);
    }
    svg.append(s(`circle.knot.lane-${lane % 6}`, { cx: x(lane), cy: middle, r: commit.parents.length > 1 ? 3 : 4.5 }));
  });
  return svg;
}

export async function newBranch(place, start) {
  const made = await ask("New branch", () => {
    const name = h("input", { required: true, autocomplete: "off" });
    const from = h("input", { value: start ?? branchOf(place), autocomplete: "off" });
    return { body: h("div.stack", field("Name", name), field("From", from, { hint: "A branch, a tag or a commit" })),
      take: async () => { await command(place.name, { frondBranch: 1, branch: name.value, start: from.value }); return name.value; } };
  }, { agree: "Create" });
  if (made) go(["db", version(place.database, made), "log"]);
}

async function newTag(place, target) {
  const made = await ask("New tag", () => {
    const name = h("input", { required: true, autocomplete: "off" }), message = h("input", { autocomplete: "off" });
    return { body: h("div.stack", field("Name", name), field("Message", message)),
      take: async () => { await command(place.name, { frondTag: 1, tag: name.value, target, message: message.value || undefined }); return true; } };
  }, { agree: "Tag" });
  if (made) refresh();
}

async function act(place, name, commit) {
  try {
    await command(place.name, { [name]: 1, target: commit.commitId });
    tell("Done", { action: { label: "Undo", run: () => undo(place) } });
    refresh();
  } catch (error) {
    if (error.code === 96) go(["db", place.name, "merge"]);
    else tell(error.message, { error: true });
  }
}

async function reset(place, commit) {
  const mode = await ask(`Move ${branchOf(place)} to ${commit.commitId.slice(0, 10)}?`, () => {
    const hard = h("input", { type: "checkbox", id: "hard" });
    return { body: h("div.stack", h("p", "Later commits leave this branch; Undo brings them back."), h("div.check", hard, h("label", { for: "hard" }, "Also make the documents what they were there"))),
      take: () => hard.checked ? "hard" : "soft" };
  }, { agree: "Move", danger: true });
  if (!mode) return;
  if (await attempt(() => command(place.name, { frondReset: 1, target: commit.commitId, mode }))) {
    tell("Moved", { action: { label: "Undo", run: () => undo(place) } });
    refresh();
  }
}

async function undo(place) {
  const { changes } = await attempt(() => command(place.name, { frondReflog: 1, limit: 20 })) ?? { changes: [] };
  const undone = new Set(changes.map((it) => it.undid).filter(Boolean));
  const next = changes.find((it) => !it.undid && !undone.has(it.change));
  if (!next) { tell("There is nothing to undo."); return; }
  if (!await confirm("Undo?", next.why, "Undo", false)) return;
  if (await attempt(() => command(place.name, { frondUndo: 1 }))) { tell(`Undone: ${next.why}`); refresh(); }
}
