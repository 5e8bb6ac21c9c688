// What waits for a person: branches with commits that the default branch hasn't, by agents (frond mcp)
// or people. Each can be looked at, merged, or refused, which deletes the branch and can be undone.

import { ask as command } from "../api.js";
import { attempt, button, confirm, h, icon, number, put, tell, time } from "../dom.js";
import { head, link, refresh, state, version, writable } from "../main.js";

const SHOWN = 50, COMMITS = 10;

export async function show(place) {
  const { branches } = await command(place.database, { frondBranch: 1, details: true }, place);
  const all = branches.filter((it) => Number(it.ahead) > 0).sort((one, other) => other.timestamp - one.timestamp);
  const shown = all.slice(0, SHOWN).map((branch) => proposal(place, branch));
  put(place.main, h("div.page", head(place, "proposals"),
    all.length ? h("p.soft", `${count(all.length, "branch", "branches")} with commits that ${state.standard} hasn't`)
      : h("p.empty", `No branch has commits that ${state.standard} hasn't: there is nothing to look at.`),
    shown.map((it) => it.card),
    all.length > SHOWN && h("p.soft", `The newest ${SHOWN} are shown.`)));
  // One after the other: a merge that is tried may be long.
  for (const it of shown) {
    if (place.signal.aborted) return;
    await it.look();
  }
}

function proposal(place, branch) {
  const name = branch.branch, { database } = place;
  const outcome = h("span", { role: "status" });
  const commits = h("ul");
  const card = h("section.card.stack", { "aria-label": name },
    h("div.row", h("h2", h("a", { href: link(["db", version(database, name)]) }, icon("branch"), name)), outcome, h("span.end"), h("span.soft.small", time(branch.timestamp))),
    h("p.small.soft", count(Number(branch.ahead), "commit", "commits"), Number(branch.behind) > 0 && `, and ${number(Number(branch.behind))} of ${state.standard} missing`),
    commits,
    h("div.row",
      h("a.button", { href: link(["db", database, "diff"], { from: `${state.standard}...${name}` }) }, "What it changes"),
      writable() && h("a.button.primary", { href: link(["db", database, "merge"], { from: name }) }, "Merge"),
      writable() && button("Refuse", () => refuse(place, name), { kind: "danger", disabled: branch.protected, title: "Delete the branch; Undo brings it back" })));
  const look = async () => {
    const [log, tried] = await Promise.all([
      command(database, { frondLog: 1, range: `${state.standard}..${name}`, limit: COMMITS }, place).catch(() => ({ commits: [] })),
      command(database, { frondMerge: 1, merge_in: name, dryRun: true }, place).catch((error) => ({ failed: error.message })),
    ]);
    put(commits, log.commits.map((commit) => h("li.row",
      h("a", { href: link(["db", database, "diff"], { from: commit.parents[0] ?? "NOTHING", to: commit.commitId }) }, commit.message.split("\n")[0] || "(no message)"),
      h("span.soft.small", commit.author))), log.next && h("li.soft", "and earlier ones"));
    const conflicts = (tried.conflicts ?? []).reduce((sum, it) => sum + Number(it.count), 0);
    put(outcome, tried.failed ? h("span.badge", { title: tried.failed }, "can't be tried")
      : conflicts ? h("span.badge.removed", count(conflicts, "conflict", "conflicts"))
      : h("span.badge.added", "merges cleanly"));
  };
  return { card, look };
}

async function refuse(place, name) {
  if (!await confirm(`Refuse ${name}?`, "The branch is deleted, with what isn't committed on it.", "Refuse")) return;
  const done = await attempt(() => command(place.database, { frondBranch: 1, branch: name, delete: true, forceDelete: true }));
  if (!done) return;
  tell(`Refused ${name}`, { action: { label: "Undo", run: async () => { await attempt(() => command(place.database, { frondUndo: 1, branch: name })); refresh(); } } });
  refresh();
}

const count = (number_, one, many) => `${number(number_)} ${number_ === 1 ? one : many}`;
