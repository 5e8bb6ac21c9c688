// How a search is run, as a picture: each stage with what it read and what it gave; red where far
// more was looked at than came out.

import { run } from "../api.js";
import { attempt, field, h, number, put } from "../dom.js";
import { head, remember } from "../main.js";
import { of, read, readDocument, show as text } from "../values.js";

export async function show(place) {
  const { query } = place;
  const filter = h("input.mono", { value: query.get("filter") ?? "", placeholder: "{ price: { $gt: 10 } }", spellcheck: "false", "data-key": "/" });
  const sort = h("input.mono", { value: query.get("sort") ?? "", placeholder: "{ price: -1 }", spellcheck: "false" });
  const stages = query.get("stages");
  const box = h("div.stack");
  const go = () => attempt(async () => {
    let command;
    if (stages) command = of({ aggregate: place.collection, pipeline: read(stages), cursor: {} });
    else {
      command = of({ find: place.collection, filter: readDocument(filter.value) });
      if (sort.value.trim()) command.v.push(["sort", readDocument(sort.value)]);
      remember({ filter: filter.value, sort: sort.value });
    }
    put(box, h("p.soft", "…"));
    draw(box, await run(place.name, { explain: command, verbosity: "executionStats" }, place));
  });
  put(place.main, h("div.page", head(place, "explain"),
    stages ? h("p", "Of the pipeline ", h("code", stages)) : h("form.filter", { onsubmit: (event) => { event.preventDefault(); go(); } },
      field("Filter", filter), field("Sort", sort), h("span"), h("button", { type: "submit" }, "Explain")), box));
  await go();
}

const count = (value) => value === undefined ? undefined : Number(value.v);

function draw(box, answer) {
  const parts = answer.get("stages")?.v ?? [answer];
  const cursor = parts.map((it) => it.get("$cursor")).find(Boolean) ?? answer;
  const planner = cursor.get("queryPlanner"), stats = cursor.get("executionStats");
  const root = stats?.get("executionStages") ?? planner?.get("winningPlan");
  const returned = count(stats?.get("nReturned")), keys = count(stats?.get("totalKeysExamined")), documents = count(stats?.get("totalDocsExamined")), millis = count(stats?.get("executionTimeMillis"));
  const rejected = planner?.get("rejectedPlans")?.v ?? [];
  const looked = Math.max(keys ?? 0, documents ?? 0);
  const scans = root && JSON.stringify(root.plain()).includes('"COLLSCAN"');
  put(box,
    stats && h("div.cards", figure("Returned", returned), figure("Keys looked at", keys), figure("Documents looked at", documents), figure("Time", millis, " ms")),
    stats && h("p", scans && looked > 100 && looked > 10 * returned ? "It reads the whole collection for few documents: an index on the fields of the filter would help."
      : looked > 10 * Math.max(1, returned) && looked > 100 ? "It looks at far more than it returns: an index that fits the filter better would help." : "It looks at about as much as it returns."),
    root && h("section.stack", h("h2", "Plan"), h("div.plan", node(root))),
    parts.length > 1 && h("section.stack", h("h2", "Stages after it"), h("ol.plan", parts.filter((it) => !it.get("$cursor")).map((it) => h("li.node", h("pre", text(it)))))),
    rejected.length > 0 && h("section.stack", h("h2", "Rejected"), rejected.map((it) => h("div.plan", node(it)))),
    h("details", h("summary", "The whole answer"), h("pre.card", text(answer))));
}

const figure = (name, value, unit = "") => h("div.card.figure", h("span.soft.small", name), h("strong", value === undefined ? "—" : number(value) + unit));

const SHOWN = ["indexName", "direction", "filter", "indexBounds", "sortPattern", "limitAmount", "skipAmount", "memLimit", "usedDisk"];

function node(stage) {
  const name = stage.get("stage")?.v ?? stage.v[0]?.[0] ?? "stage";
  const gave = count(stage.get("nReturned")), looked = Math.max(count(stage.get("docsExamined")) ?? 0, count(stage.get("keysExamined")) ?? 0);
  const bad = looked > 100 && gave !== undefined && looked > 10 * Math.max(1, gave);
  const inner = [stage.get("inputStage"), ...stage.get("inputStages")?.v ?? [], stage.get("queryPlan")].filter(Boolean);
  const fact = (label, value) => value !== undefined && h("div", h("dt", label), h("dd", value));
  const share = h("i");
  share.style.width = `${Math.round(100 * Math.min(1, (gave ?? 0) / Math.max(1, looked)))}%`;
  return h("div", h(`div.node${bad ? ".bad" : ""}`, h("div.row", h("strong", name), stage.get("indexName") && h("span.badge.branch", stage.get("indexName").v), bad && h("span.badge.removed", "looks at far more than it gives")),
    h("dl.facts.small", fact("gives", gave === undefined ? undefined : number(gave)), fact("keys", stage.get("keysExamined") && number(count(stage.get("keysExamined")))),
      fact("documents", stage.get("docsExamined") && number(count(stage.get("docsExamined")))), fact("time", stage.get("executionTimeMillisEstimate") && `${stage.get("executionTimeMillisEstimate").v} ms`),
      SHOWN.filter((it) => it !== "indexName").map((it) => fact(it, stage.get(it) && h("code", stage.get(it).t === "string" ? stage.get(it).v : text(stage.get(it), null))))),
    looked > 0 && gave !== undefined && h("div.ratio", { "aria-hidden": "true" }, share)),
  inner.length > 0 && h("ul", inner.map((it) => h("li", node(it)))));
}
