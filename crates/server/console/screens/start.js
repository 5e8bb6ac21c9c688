// All databases: their branches, and what waits in them.

import { ask as command } from "../api.js";
import { bytes, h, icon, put } from "../dom.js";
import { link, state, version } from "../main.js";

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
    put(box, h("div.row", (branches?.branches ?? []).slice(0, 12).map((it) =>
      h("a.badge.branch", { href: link(["db", version(name, it.branch === standard ? "" : it.branch)]) }, icon("branch"), it.branch))),
    h("div.row.soft", sizes.has(name) && bytes(sizes.get(name)),
      status?.dirty && h("a.badge.changed", { href: link(["db", name, "diff"]) }, "uncommitted changes"),
      status?.merging && h("a.badge.changed", { href: link(["db", name, "merge"]) }, "a merge waits"),
      !branches && "can't be looked into"));
  }));
}
