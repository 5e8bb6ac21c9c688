// All databases: their branches, and what waits in them.

import { ask as command } from "../api.js";
import { bytes, h, icon, number, put } from "../dom.js";
import { link, state, version } from "../main.js";

const BRANCHES_MAX = 12;

export async function show(place) {
  const listed = await command("admin", { listDatabases: 1 }).catch(() => null);
  const sizes = new Map((listed?.databases ?? []).map((it) => [it.name, it.sizeOnDisk]));
  const cards = state.databases.map((name) => ({ name, box: h("div.stack.small", h("span.soft", "…")) }));
  put(place.main, h("div.page", h("div.head", h("h1", "Databases"), h("span.end"), h("span.soft.small", `Frond ${state.session.version}`)),
    cards.length ? h("div.cards", cards.map(({ name, box }) => h("section.card.stack", h("h2", h("a", { href: link(["db", name]) }, name)), box)))
      : h("p.empty", "No databases yet. Make one with + at the left, or by any client of MongoDB.")));
  await Promise.all(cards.map(async ({ name, box }) => {
    const [branches, status] = await Promise.all([
      command(name, { frondBranch: 1 }, place).catch(() => null),
      command(name, { frondStatus: 1 }, place).catch(() => null),
    ]);
    const standard = status?.branch;
    const listed = branches?.branches ?? [];
    put(box, h("div.row", listed.slice(0, BRANCHES_MAX).map((it) =>
      h("a.badge.branch", { href: link(["db", version(name, it.branch === standard ? "" : it.branch)]), title: it.branch }, icon("branch"), it.branch)),
    listed.length > BRANCHES_MAX && h("a.badge", { href: link(["db", name, "log"], { all: 1 }) }, `and ${number(listed.length - BRANCHES_MAX)} more`)),
    h("div.row.soft", sizes.has(name) && bytes(sizes.get(name)),
      status?.dirty && h("a.badge.changed", { href: link(["db", name, "diff"]) }, "uncommitted changes"),
      status?.merging && h("a.badge.changed", { href: link(["db", name, "merge"]) }, "a merge waits"),
      !branches && "can't be looked into"));
  }));
}
