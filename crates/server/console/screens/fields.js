// What the fields of a collection hold, from a sample: how many documents have each, of which types,
// and bars of its values. A bar is a condition: pressed, it becomes part of the filter.

import { documents } from "../api.js";
import { button, h, number, put } from "../dom.js";
import { Value, brief, of, show as text, write } from "../values.js";

const SAMPLE = 500, MILLIS = 5000, FIELDS_MAX = 40, BARS_MAX = 8, TEXT_MAX = 80;
const NUMBERS = ["int", "long", "double", "decimal"];
const LISTED = ["string", "bool", "objectId", "null", ...NUMBERS, "date"];

/** Samples what the filter finds, and shows its fields; `take` gets the filter that a bar makes. */
export async function showFields(box, place, filter, take) {
  put(box, h("p.soft", "…"));
  const pipeline = of([of({ $match: filter }), of({ $sample: of({ size: SAMPLE }) })]);
  const found = await documents(place.name, { aggregate: place.collection, pipeline, cursor: { batchSize: SAMPLE }, maxTimeMS: MILLIS }, { max: SAMPLE, signal: place.signal });
  const fields = gather(found.documents);
  put(box, h("p.soft.small", `Of ${number(found.documents.length)} documents, chosen by chance. A bar narrows the filter.`),
    [...fields].slice(0, FIELDS_MAX).map(([name, values]) => card(name, values, found.documents.length, (condition) => take(narrowed(filter, name, condition)))));
}

function gather(sampled) {
  const fields = new Map();
  for (const document of sampled) {
    for (const [name, value] of document.v) fields.set(name, [...fields.get(name) ?? [], value]);
  }
  return fields;
}

function card(name, values, count, take) {
  const types = new Map();
  for (const { t } of values) types.set(t, (types.get(t) ?? 0) + 1);
  const told = [...types].sort(([, one], [, other]) => other - one).map(([type, of]) => types.size > 1 ? `${type} ${percent(of, values.length)}` : type);
  const bars = barsOf(values), most = Math.max(1, ...bars.map((bar) => bar.count));
  // Names that a filter would read otherwise can't be asked for.
  const possible = name !== "" && !name.startsWith("$") && !name.includes(".");
  return h("section.card.stack.bars", { "aria-label": `Field ${name}` },
    h("div.row", h("strong.mono", name), h("span.soft.small", told.join(", ")), h("span.end"), h("span.soft.small", `in ${percent(values.length, count)}`)),
    bars.map((bar) => {
      const share = h("i", { "aria-hidden": "true" });
      share.style.width = `${Math.max(1, Math.round(100 * bar.count / most))}%`;
      return button([share, h("span.what", bar.label), h("span.number", number(bar.count))], () => take(bar.condition), { kind: "quiet", disabled: !possible });
    }));
}

const percent = (part, whole) => `${Math.round(100 * part / Math.max(1, whole))} %`;

/** The commonest values; of numbers and dates that differ much, ranges. */
export function barsOf(values) {
  const listed = values.flatMap((value) => value.t === "array" ? value.v : [value]).filter((value) => LISTED.includes(value.t) && String(value.v).length <= TEXT_MAX);
  const counts = new Map();
  for (const value of listed) {
    const key = write(value), before = counts.get(key);
    counts.set(key, { value, count: (before?.count ?? 0) + 1 });
  }
  for (const kinds of [NUMBERS, ["date"]]) {
    const numbers = listed.filter((value) => kinds.includes(value.t) && Number.isFinite(Number(value.v)));
    if (counts.size > BARS_MAX && numbers.length > listed.length / 2) return ranges(numbers, kinds[0] === "date");
  }
  const sorted = [...counts.values()].sort((one, other) => other.count - one.count).slice(0, BARS_MAX);
  // Of values that are each there once a bar says nothing.
  if (counts.size > BARS_MAX && sorted[0].count === 1) return [];
  return sorted.map(({ value, count }) => ({ label: brief(value, 40), count, condition: value }));
}

function ranges(values, areDates) {
  const numbers = values.map((value) => Number(value.v));
  const least = Math.min(...numbers), greatest = Math.max(...numbers);
  const step = areDates ? Math.ceil((greatest - least + 1) / BARS_MAX) : roundStep((greatest - least) / BARS_MAX);
  const start = areDates ? least : Math.floor(least / step) * step;
  const edge = (at) => areDates ? start + at * step : Number((start + at * step).toPrecision(12));
  const bars = [];
  for (let at = 0; edge(at) <= greatest && bars.length <= BARS_MAX + 1; at++) {
    const from = edge(at), to = edge(at + 1);
    const count = numbers.filter((it) => from <= it && it < to).length;
    const [low, high] = [from, to].map((it) => areDates ? new Value("date", String(it)) : of(it));
    bars.push({ label: `${brief(low)} – ${brief(high)}`, count, condition: of({ $gte: low, $lt: high }) });
  }
  return bars;
}

/** The next of 1, 2, 5, 10, …, so that edges are numbers that people like. */
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(Math.max(step, 1e-12)));
  return [1, 2, 5, 10].map((it) => it * power).find((it) => it >= step) ?? 10 * power;
}

/** A filter with another condition on a field: in the place of the one that is there. */
export function narrowed(filter, name, condition) {
  return text(new Value("object", [...filter.v.filter(([field]) => field !== name), [name, condition]]), null);
}
