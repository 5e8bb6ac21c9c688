// A pipeline, stage by stage: each with a sample of what comes out of it.

import { documents } from "../api.js";
import { ask, attempt, button, confirm, field, h, put, tell } from "../dom.js";
import { LANGUAGES } from "./driver_code.js";
import { head, link, remember } from "../main.js";
import { Value, of, read, show as text } from "../values.js";

const STAGES = ["$match", "$project", "$set", "$group", "$sort", "$limit", "$skip", "$unwind", "$lookup", "$count", "$addFields", "$bucket", "$bucketAuto", "$densify", "$diff", "$facet", "$fill", "$geoNear", "$graphLookup", "$history", "$indexStats", "$log", "$merge", "$out", "$redact", "$replaceWith", "$sample", "$setWindowFields", "$sortByCount", "$unionWith", "$unset"];
const START = { $limit: "10", $skip: "10", $unwind: '"$field"', $count: '"count"', $sortByCount: '"$field"', $out: '"collection"', $unset: '"field"', $group: '{ _id: "$field", count: { $sum: 1 } }', $sort: "{ field: 1 }", $sample: "{ size: 10 }", $lookup: '{ from: "", localField: "", foreignField: "_id", as: "" }' };
const SAMPLE = 5, MILLIS = 5000;

export async function show(place) {
  let stages = [];
  try {
    stages = (read(place.query.get("stages") || "[]").v).map((it) => ({ name: it.v[0][0], text: text(it.v[0][1]), on: true }));
  } catch { /* An address that somebody wrote by hand. */ }
  if (!stages.length) stages = [{ name: "$match", text: "{ }", on: true }];
  const list = h("div.stack");
  const result = h("div.stack");
  let running = new AbortController();
  place.signal.addEventListener("abort", () => running.abort());

  const pipeline = (count = stages.length) => of(stages.slice(0, count).filter((it) => it.on).map((it) => {
    try {
      return new Value("object", [[it.name, read(it.text)]]);
    } catch (error) {
      throw new SyntaxError(`${it.name}: ${error.message}`);
    }
  }));
  const writes = (name) => name === "$out" || name === "$merge";

  function save() {
    try { remember({ stages: text(pipeline(), null) }); } catch { /* Half written. */ }
  }

  async function sample() {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    for (const [at, stage] of stages.entries()) {
      const { box } = stage;
      if (!stage.on) { put(box, h("span.soft", "off")); continue; }
      if (writes(stage.name)) { put(box, h("span.soft", "It writes: not sampled. Run does it.")); continue; }
      try {
        const cut = of([...pipeline(at + 1).v, of({ $limit: SAMPLE })]);
        const found = await documents(place.name, { aggregate: place.collection, pipeline: cut, cursor: { batchSize: SAMPLE }, maxTimeMS: MILLIS }, { max: SAMPLE, signal });
        if (signal.aborted) return;
        put(box, found.documents.length ? found.documents.map((it) => h("div", text(it))) : h("span.soft", "nothing"));
      } catch (error) {
        if (signal.aborted) return;
        put(box, h("span.why", error.message));
        for (const rest of stages.slice(at + 1)) put(rest.box, h("span.soft", "—"));
        return;
      }
    }
  }

  let later;
  const changed = () => { save(); clearTimeout(later); later = setTimeout(sample, 350); };

  function render() {
    put(list, stages.map((stage, at) => {
      stage.box = h("div.sample", { tabindex: 0, role: "group", "aria-label": `Sample after stage ${at + 1}` }, "…");
      const name = h("select", { "aria-label": `Stage ${at + 1}`, onchange: () => { stage.name = name.value; if (START[stage.name]) area.value = stage.text = START[stage.name]; changed(); } },
        [...new Set([stage.name, ...STAGES])].map((it) => h("option", { value: it, selected: it === stage.name }, it)));
      const area = h("textarea", { rows: Math.min(14, Math.max(3, stage.text.split("\n").length)), value: stage.text, spellcheck: "false", "aria-label": `Stage ${at + 1}, ${stage.name}`, oninput: () => { stage.text = area.value; changed(); } });
      const move = (to) => { stages.splice(to, 0, ...stages.splice(at, 1)); render(); };
      return h(`section.stage${stage.on ? "" : ".off"}`, { "aria-label": `Stage ${at + 1}` },
        h("div.card.stack", h("div.row", h("span.soft", at + 1), name, h("span.end"),
          button("", () => move(at - 1), { kind: "quiet.square", title: "Move up", glyph: "plus", disabled: at === 0 }),
          button(stage.on ? "On" : "Off", () => { stage.on = !stage.on; render(); }, { kind: "quiet", pressed: stage.on, title: "Whether the stage takes part" }),
          button("", () => { stages.splice(at, 1); render(); }, { kind: "quiet.square", glyph: "trash", title: "Remove the stage" })), area),
        h("div.card", stage.box));
    }));
    for (const it of list.querySelectorAll("[title='Move up']")) put(it, "↑");
    changed();
  }

  async function runAll() {
    const last = stages.filter((it) => it.on).at(-1);
    if (last && writes(last.name) && !await confirm(`Run ${last.name}?`, "This pipeline writes its result to a collection.", "Run")) return;
    const begun = performance.now();
    const found = await attempt(() => documents(place.name, { aggregate: place.collection, pipeline: pipeline(), cursor: { batchSize: 101 } }, { max: 500, signal: place.signal }));
    if (!found) return;
    put(result, h("div.row", h("h2", found.more ? `The first ${found.documents.length}` : `${found.documents.length} documents`), h("span.soft.small", `${Math.round(performance.now() - begun)} ms`)),
      h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Result" }, h("div.page", found.documents.map((it) => h("pre", text(it))))));
    result.scrollIntoView({ block: "nearest" });
  }

  const copy = async () => {
    const whole = await attempt(() => pipeline());
    if (!whole) return;
    const code = await ask("The pipeline as code", () => {
      const area = h("textarea", { rows: 14, readonly: true, spellcheck: "false", "aria-label": "Code" });
      const language = h("select", { onchange: () => fill() }, Object.keys(LANGUAGES).map((it) => h("option", { value: it }, it)));
      const fill = () => { area.value = LANGUAGES[language.value](place.name, place.collection, whole); };
      fill();
      return { body: h("div.stack", field("Language", language), area), take: () => area.value };
    }, { agree: "Copy", wide: true });
    if (code) navigator.clipboard?.writeText(code).then(() => tell("Copied"));
  };
  put(place.main, h("div.page", head(place, "aggregate",
    button("Copy as code", copy, { kind: "quiet", glyph: "copy", title: "For the shell or a driver" }),
    button("Explain", () => attempt(() => { location.hash = link(["db", place.name, "explain", place.collection], { stages: text(pipeline(), null) }); }), { kind: "quiet" }),
    button("Run", runAll, { kind: "primary" })), list,
  h("div", button("Add stage", () => { stages.push({ name: "$match", text: "{ }", on: true }); render(); list.lastChild.querySelector("select").focus(); }, { glyph: "plus" })), result));
  render();
}
