// What holds for a whole database in this data directory: its policy and its remotes. A clone has
// neither.

import { ask as command, run } from "../api.js";
import { ask, attempt, button, confirm, field, h, number, put, tell } from "../dom.js";
import { branchOf, head, isVersion, link, refresh, writable } from "../main.js";
import { readDocument, show as text } from "../values.js";

const EXAMPLE = '{\n  everySeconds: 3600,\n  rules: [{ name: "prices", collection: "items", documents: { price: { $gte: 0 } } }]\n}';

export async function show(place) {
  const { database } = place;
  const [policy, remotes] = await Promise.all([
    run(database, { frondPolicy: 1 }, place).then((it) => it.get("policy")).catch((error) => error),
    command(database, { frondRemote: 1 }, place).then((it) => it.remotes).catch((error) => error),
  ]);
  put(place.main, h("div.page", head(place, "settings"),
    h("section.stack", { "aria-label": "Policy" }, h("h2", "Policy"), policyOf(place, policy)),
    h("section.stack", { "aria-label": "Remotes" }, h("h2", "Remotes"), remotesOf(place, remotes))));
}

function policyOf(place, policy) {
  if (policy instanceof Error) return h("p.why", policy.message);
  const has = policy?.t === "object";
  return [
    has ? h("pre.card", { tabindex: 0 }, text(policy)) : h("p.soft", "None: changes are committed by hand, and a commit may hold anything."),
    writable() && h("div.row", button(has ? "Change" : "Set", () => setPolicy(place, has ? text(policy) : EXAMPLE)),
      has && button("Remove", () => removePolicy(place), { kind: "danger" })),
  ];
}

async function setPolicy(place, before) {
  const done = await ask("Policy", () => {
    const area = h("textarea", { rows: 12, spellcheck: "false", value: before });
    return {
      body: field("Fields", area, { hint: "everySeconds and changedBytes commit by themselves; rules say what a commit may hold; branches, author, message, thin" }),
      take: () => run(place.database, { frondPolicy: 1, set: readDocument(area.value) }, place),
    };
  }, { agree: "Set", wide: true });
  if (done) { tell("Set"); refresh(); }
}

async function removePolicy(place) {
  if (!await confirm("Remove the policy?", "Nothing is committed automatically any more, and no rule is checked.", "Remove")) return;
  if (await attempt(() => command(place.database, { frondPolicy: 1, remove: true }))) refresh();
}

function remotesOf(place, remotes) {
  if (remotes instanceof Error) return h("p.why", remotes.message);
  const branch = branchOf(place), pushes = !isVersion(place.version);
  const actions = ({ name }) => h("span.row",
    button("Fetch", () => transfer(place, "Fetch", name), { kind: "quiet" }),
    pushes && button(`Push ${branch}`, () => transfer(place, "Push", name), { kind: "quiet" }),
    button("", () => removeRemote(place, name), { kind: "quiet.square", glyph: "trash", title: `Remove ${name}` }));
  return [
    remotes.length ? h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Remotes" }, h("table", h("thead", h("tr", h("th", "Name"), h("th", "Place"), h("th", h("span.hidden", "Actions")))),
      h("tbody", remotes.map((it) => h("tr", h("td", it.name), h("td.mono", it.url), h("td", writable() && actions(it)))))))
      : h("p.soft", "None: no other repository of this database is known here."),
    writable() && h("div.row", button("Add remote", () => addRemote(place), { glyph: "plus" })),
  ];
}

async function addRemote(place) {
  const done = await ask("Add a remote", () => {
    const name = h("input", { required: true, value: "origin", autocomplete: "off" });
    const url = h("input.mono", { required: true, autocomplete: "off", spellcheck: "false" });
    return {
      body: h("div.stack", field("Name", name), field("Place", url, { hint: "http(s)://HOST:PORT/DATABASE or s3://BUCKET/PREFIX" })),
      take: () => command(place.database, { frondRemote: 1, name: name.value, url: url.value.trim() }),
    };
  }, { agree: "Add" });
  if (done) refresh();
}

async function removeRemote(place, name) {
  if (!await confirm(`Remove ${name}?`, "What was fetched from it stays until space is freed.", "Remove")) return;
  if (await attempt(() => command(place.database, { frondRemote: 1, name, remove: true }))) refresh();
}

/** Fetches or pushes; a token is asked for, since none is kept. */
async function transfer(place, what, remote) {
  const pushes = what === "Push", branch = branchOf(place);
  const done = await ask(pushes ? `Push ${branch} to ${remote}` : `Fetch from ${remote}`, () => {
    const token = h("input", { type: "password", autocomplete: "off" });
    return {
      body: field("Token", token, { hint: "Empty if the place asks for none; it isn't kept" }),
      take: () => command(pushes ? place.name : place.database, { [`frond${what}`]: 1, remote, token: token.value || undefined }, place),
    };
  }, { agree: what });
  if (!done) return;
  const commits = Number(done.moved?.commits ?? 0);
  const moved = commits === 1 ? "1 commit" : `${number(commits)} commits`;
  const from = `${remote}/${branch}`;
  const merges = !pushes && (done.branches ?? []).some((it) => it.name === from);
  tell(pushes ? `Pushed: ${moved}` : `Fetched: ${moved}`,
    merges ? { action: { label: `Merge ${from}`, run: () => { location.hash = link(["db", place.name, "merge"], { from }); } } } : {});
  refresh();
}
