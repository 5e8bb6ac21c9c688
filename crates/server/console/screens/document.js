// One document through its versions: what each changed, what it was, and which commit each of its
// fields comes from.

import { run } from "../api.js";
import { attempt, button, confirm, h, put, tell, time } from "../dom.js";
import { head, isVersion, link, refresh, writable } from "../main.js";
import { brief, of, read, show as text } from "../values.js";
import { path } from "./diff.js";

export async function show(place) {
  const id = read(place.query.get("id") ?? "null");
  const { collection, name } = place;
  const [history, blame] = await Promise.all([
    run(name, { frondHistory: 1, collection, document: id, limit: 500 }, place),
    run(name, { frondBlame: 1, collection, document: id }, place).catch(() => null),
  ]);
  const versions = history.get("versions").v;
  const view = h("div.stack");
  const slider = h("input", { type: "range", min: 0, max: Math.max(0, versions.length - 1), value: versions.length - 1, "aria-label": "Version", oninput: () => shown(versions.length - 1 - Number(slider.value)) });
  const canWrite = writable() && !isVersion(place.version);

  function shown(at) {
    const it = versions[at];
    const commit = it.get("commitId")?.v;
    const changes = it.get("changes")?.v ?? [];
    slider.setAttribute("aria-valuetext", commit ? it.get("message").v : "uncommitted");
    put(view, h("div.row", h("strong", commit ? it.get("message").v.split("\n")[0] : "Uncommitted"),
      h("span.badge", { class: `badge ${it.get("change").v === "modified" ? "changed" : it.get("change").v}` }, it.get("change").v),
      commit && h("span.soft.small", it.get("author").v, " · ", time(it.get("timestamp").plain())), commit && h("code.soft", commit.slice(0, 10)),
      h("span.end"), commit && canWrite && at > 0 && button("Restore this version", () => restore(commit), { kind: "quiet" })),
    changes.map((change) => path(change.get("path").v, change.get("from"), change.get("to"))),
    it.get("document") && it.get("document").t === "object" ? h("pre.card", text(it.get("document"))) : h("p.empty", "It wasn't there."));
  }

  async function restore(commit) {
    if (!await confirm("Restore this version?", "The document becomes what it was, as an uncommitted change.", "Restore", false)) return;
    if (await attempt(() => run(name, { frondRestore: 1, collection, from: commit, document: id }))) { tell("Restored"); refresh(); }
  }

  put(place.main, h("div.page", head(place, ""), h("h2.mono", brief(id, 80)),
    versions.length ? [h("section.stack", { "aria-label": "Versions" },
      h("div.row", h("h2", versions.length === 1 ? "1 version" : `${versions.length} versions`)), versions.length > 1 && slider, view),
    ] : h("p.empty", "No commit has this document."),
    blame && h("section.stack", h("div.row", h("h2", "Blame"), blame.get("dirty").v && h("span.badge.changed", "uncommitted changes")),
      h("div.card", h("div.blame", blame.get("fields").v.map((field) => {
        const commit = field.get("commitId")?.v;
        return [h("span.mono", field.get("path").v), h("span.mono", brief(field.get("value") ?? of(null))),
          h("span.small", commit ? [h("a", { href: link(["db", name, "diff"], { from: field.get("parents").v[0]?.v ?? "NOTHING", to: commit }) }, field.get("message").v.split("\n")[0]), " ", h("span.soft", field.get("author").v, " · ", time(field.get("timestamp").plain()))] : h("span.soft", "uncommitted"))];
      }))))));
  if (versions.length) shown(0);
}
