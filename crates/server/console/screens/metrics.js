// What the server does now: counters each second, and the operations that run, which can be ended.

import { ask as command } from "../api.js";
import { attempt, button, bytes, confirm, h, number, put, s, tell } from "../dom.js";
import { writable } from "../main.js";

const SECONDS = 120;

export async function show(place) {
  const rows = [];
  const figures = h("div.cards"), operations = h("div.stack"), more = h("div.stack");
  put(place.main, h("div.page", h("div.head", h("h1", "Metrics and operations"), h("span.end"), h("span.soft.small", "each second")), figures, h("section.stack", h("h2", "Operations"), operations), more));
  let before;
  const look = async () => {
    const now = await command("admin", { serverStatus: 1, opLatencies: { histograms: true } }, place);
    const at = performance.now();
    if (before) {
      const seconds = (at - before.at) / 1000;
      const rate = (get) => Math.max(0, (get(now) - get(before.now)) / seconds);
      const counters = now.opcounters;
      rows.push({
        reads: rate((it) => it.opcounters.query + it.opcounters.getmore), writes: rate((it) => it.opcounters.insert + it.opcounters.update + it.opcounters.delete),
        commands: rate((it) => it.opcounters.command), latency: latency(before.now, now), ...shares(before.now, now), memory: (now.mem?.resident ?? 0) * 2 ** 20, connections: now.connections?.current ?? 0, counters,
      });
      if (rows.length > SECONDS) rows.shift();
      draw(now);
    }
    before = { now, at };
    const running = await command("admin", { currentOp: 1 }, place).catch(() => ({ inprog: [] }));
    list(running.inprog.filter((it) => !it.command?.currentOp && it.active));
  };
  const latency = (one, other) => {
    const sum = (it, what) => ["reads", "writes", "commands"].reduce((total, kind) => total + Number(it.opLatencies?.[kind]?.[what] ?? 0), 0);
    const ops = sum(other, "ops") - sum(one, "ops");
    return ops > 0 ? (sum(other, "latency") - sum(one, "latency")) / ops / 1000 : 0;
  };

  /** The times that half and all but a hundredth of the operations since then kept to, in ms. */
  const shares = (one, other) => {
    const counts = new Map();
    for (const [it, sign] of [[one, -1], [other, 1]]) {
      for (const kind of ["reads", "writes", "commands"]) {
        for (const { micros, count } of it.opLatencies?.[kind]?.histogram ?? []) counts.set(Number(micros), (counts.get(Number(micros)) ?? 0) + sign * Number(count));
      }
    }
    return { p50: kept(counts, 0.5), p99: kept(counts, 0.99) };
  };

  function draw(now) {
    const last = rows.at(-1);
    const one = (value) => value < 10 ? value.toFixed(1) : number(Math.round(value));
    put(figures, card("Reads a second", one(last.reads), "reads"), card("Writes a second", one(last.writes), "writes"), card("Commands a second", one(last.commands), "commands"),
      card("Time of an operation", `${last.latency.toFixed(2)} ms`, "latency"), card("Half within (p50)", within(last.p50), "p50"), card("99 of 100 within (p99)", within(last.p99), "p99"), card("Connections", number(last.connections), "connections"), card("Memory", bytes(last.memory), "memory"));
    const { frond = {} } = now;
    put(more, h("section.stack", h("h2", "Engine and store"), h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Engine and store" }, h("table", h("tbody", flat(frond).map(([name, value]) => h("tr", h("td", name), h("td.number", typeof value === "number" ? number(value) : String(value)))))))));
  }

  function card(title, value, name) {
    const values = rows.map((it) => it[name]), max = Math.max(1e-9, ...values), width = SECONDS - 1;
    const points = values.map((it, at) => `${width - values.length + 1 + at} ${(30 - 28 * it / max).toFixed(2)}`);
    const line = points.length > 1 ? `M${points.join("L")}` : "M0 30";
    return h("section.card.figure", h("span.soft.small", title), h("strong", value),
      s("svg.spark", { viewBox: `0 0 ${width} 31`, preserveAspectRatio: "none", "aria-hidden": "true" }, s("path.area", { d: `${line}L${width} 31L${width - values.length + 1} 31Z` }), s("path", { d: line })));
  }

  function list(running) {
    if (!running.length) { put(operations, h("p.soft", "Nothing runs but this.")); return; }
    if (operations.contains(document.activeElement)) return;
    put(operations, h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Operations" }, h("table", h("thead", h("tr", h("th", "Operation"), h("th", "Namespace"), h("th", "Client"), h("th.number", "Runs"), h("th", "How far"), h("th", h("span.hidden", "Actions")))),
      h("tbody", running.map((it) => h("tr", h("td", it.op === "command" && it.command ? Object.keys(it.command)[0] : it.op ?? ""), h("td", it.ns ?? ""), h("td", it.appName ?? "", " ", h("span.soft", it.client ?? "")),
        h("td.number", `${((it.microsecs_running ?? 0) / 1e6).toFixed(1)} s`), h("td", it.msg ?? "", it.progress && ` ${number(it.progress.done)} of ${number(it.progress.total)}`),
        h("td", writable() && button("End", () => kill(it), { kind: "danger" }))))))));
  }

  async function kill(it) {
    if (!await confirm("End the operation?", `${it.ns ?? ""} ${it.client ?? ""}`, "End")) return;
    if (await attempt(() => command("admin", { killOp: 1, op: it.opid }))) tell("It was told to end");
  }

  await look();
  put(figures, h("p.soft", "…"));
  let waits = false;
  const timer = setInterval(async () => {
    if (waits || document.hidden) return;
    waits = true;
    try { await look(); } catch (error) { if (!place.signal.aborted) { clearInterval(timer); put(figures, h("p.why", error.message)); } }
    waits = false;
  }, 1000);
  place.signal.addEventListener("abort", () => clearInterval(timer));
}

/** The upper end of the span of the histogram below which a share of the counts lies; in ms. */
export function kept(counts, share) {
  const spans = [...counts].filter(([, count]) => count > 0).sort(([one], [other]) => one - other);
  const edges = [...counts.keys()].sort((one, other) => one - other);
  let left = share * spans.reduce((sum, [, count]) => sum + count, 0);
  for (const [from, count] of spans) {
    left -= count;
    // A span ends where the next may begin: they double, or rise by half, as mongod's.
    if (left <= 1e-9) return (edges.find((edge) => edge > from && edge <= 2 * from) ?? Math.max(2, 2 * from)) / 1000;
  }
  return 0;
}

const within = (millis) => millis ? `${millis < 1 ? millis.toFixed(3) : millis.toFixed(1)} ms` : "—";

function flat(value, path = "") {
  if (value === null || typeof value !== "object" || value instanceof Date) return [[path, value instanceof Date ? value.toISOString() : value ?? ""]];
  return Object.entries(value).flatMap(([name, inner]) => flat(inner, path ? `${path}.${name}` : name)).slice(0, 400);
}
