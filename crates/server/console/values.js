// Values with their BSON types, and their text.
//
// A value is {t, v}: the name of its type and what it holds, numbers as text, so that nothing is
// rounded. A document is a list of [name, value], so that order and repeated names stay.
//
// read() takes canonical extended JSON, relaxed extended JSON and what shells take (ObjectId("…"),
// ISODate("…"), names without quotes). write() gives canonical extended JSON, show() the shell's
// form; read(show(value)) is the same value.

export class Value {
  constructor(t, v) {
    this.t = t;
    this.v = v;
  }
  /** The value of a field of a document, or at a position of an array. */
  get(name) {
    if (this.t === "object") return this.v.find(([field]) => field === name)?.[1];
    if (this.t === "array") return this.v[name];
    return undefined;
  }
  /** As a value of JavaScript: for what the server counts and names, not for what people stored. */
  plain() {
    switch (this.t) {
      case "object": {
        const map = Object.create(null);
        for (const [name, value] of this.v) map[name] = value.plain();
        return map;
      }
      case "array": return this.v.map((value) => value.plain());
      case "int": case "long": case "double": case "decimal": return Number(this.v);
      case "date": return new Date(Number(this.v));
      case "null": case "undefined": return null;
      case "string": case "bool": case "objectId": return this.v;
      default: return this;
    }
  }
}

export const TYPES = ["string", "int", "long", "double", "decimal", "bool", "date", "objectId",
  "null", "object", "array", "binData", "regex", "timestamp", "code", "codeWithScope", "symbol",
  "dbPointer", "minKey", "maxKey", "undefined"];

const simple = (t) => new Value(t, null);
export const NULL = simple("null");
const INT_MAX = 2n ** 31n, LONG_MAX = 2n ** 63n;
const DEPTH_MAX = 200;

/** A value of JavaScript as one with a type; values that have one stay. */
export function of(it) {
  if (it instanceof Value) return it;
  if (it === null || it === undefined) return NULL;
  if (typeof it === "string") return new Value("string", it);
  if (typeof it === "boolean") return new Value("bool", it);
  if (typeof it === "number") {
    if (Number.isInteger(it)) return whole(BigInt(it));
    return new Value("double", doubleText(it));
  }
  if (it instanceof Date) return new Value("date", String(it.getTime()));
  if (Array.isArray(it)) return new Value("array", it.map(of));
  return new Value("object", Object.entries(it).filter(([, v]) => v !== undefined)
    .map(([name, value]) => [name, of(value)]));
}

function whole(number) {
  if (-INT_MAX <= number && number < INT_MAX) return new Value("int", String(number));
  if (-LONG_MAX <= number && number < LONG_MAX) return new Value("long", String(number));
  return new Value("double", doubleText(Number(number)));
}

function doubleText(number) {
  if (Object.is(number, -0)) return "-0.0";
  const text = String(number);
  return /^-?\d+$/.test(text) ? text + ".0" : text;
}

// ---- reading

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
  }

  fail(what) {
    const before = this.text.slice(0, this.at).split("\n");
    throw new SyntaxError(`${what}, line ${before.length} column ${before.at(-1).length + 1}`);
  }

  space() {
    const text = this.text;
    for (;;) {
      const code = text.charCodeAt(this.at);
      if (code === 32 || code === 10 || code === 13 || code === 9) this.at++;
      else if (code === 47 && text[this.at + 1] === "/") {
        const end = text.indexOf("\n", this.at);
        this.at = end < 0 ? text.length : end;
      } else return;
    }
  }

  take(letter) {
    this.space();
    if (this.text[this.at] !== letter) return false;
    this.at++;
    return true;
  }

  need(letter) {
    if (!this.take(letter)) this.fail(`expected ${letter}`);
  }

  value() {
    this.space();
    const letter = this.text[this.at];
    if (letter === "{") return wrapped(this.object());
    if (letter === "[") return this.array();
    if (letter === '"' || letter === "'") return new Value("string", this.string());
    if (letter === "/") return this.regex();
    if (letter !== undefined && /[-+.\d]/.test(letter)) return this.number();
    if (letter !== undefined && /[\p{L}_$]/u.test(letter)) return this.word();
    return this.fail(letter === undefined ? "the text ends early" : `unexpected ${letter}`);
  }

  object() {
    this.need("{");
    if (++this.depth > DEPTH_MAX) this.fail("nested too deep");
    const fields = [];
    while (!this.take("}")) {
      const name = this.name();
      this.need(":");
      fields.push([name, this.value()]);
      if (!this.take(",")) { this.need("}"); break; }
    }
    this.depth--;
    return fields;
  }

  name() {
    this.space();
    const letter = this.text[this.at];
    if (letter === '"' || letter === "'") return this.string();
    const found = /[\p{L}\d_$.]+/uy;
    found.lastIndex = this.at;
    const name = found.exec(this.text)?.[0];
    if (!name) this.fail("expected the name of a field");
    this.at += name.length;
    return name;
  }

  array() {
    this.need("[");
    if (++this.depth > DEPTH_MAX) this.fail("nested too deep");
    const items = [];
    while (!this.take("]")) {
      items.push(this.value());
      if (!this.take(",")) { this.need("]"); break; }
    }
    this.depth--;
    return new Value("array", items);
  }

  string() {
    const { text } = this;
    const quote = text[this.at];
    let end = this.at + 1, escaped = false;
    while (text[end] !== quote) {
      if (end >= text.length) this.fail("the text ends inside a string");
      if (text[end] === "\\") { escaped = true; end++; }
      end++;
    }
    const inside = text.slice(this.at + 1, end);
    this.at = end + 1;
    if (!escaped && quote === '"' && !inside.includes("\n")) return inside;
    const escapes = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", 0: "\0", v: "\v" };
    return inside.replace(/\\(u([\da-fA-F]{4})|x([\da-fA-F]{2})|[^])/g, (_, letter, four, two) =>
      four || two ? String.fromCharCode(parseInt(four ?? two, 16)) : escapes[letter] ?? letter);
  }

  number() {
    const found = /[-+]?(?:Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)/y;
    found.lastIndex = this.at;
    const text = found.exec(this.text)?.[0];
    if (!text) this.fail("expected a number");
    this.at += text.length;
    if (/^[-+]?\d+$/.test(text) && text !== "-0") return whole(BigInt(text));
    return new Value("double", doubleText(Number(text)));
  }

  regex() {
    const found = /\/((?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n])*\]|[^/\\\n])+)\/([a-z]*)/y;
    found.lastIndex = this.at;
    const match = found.exec(this.text);
    if (!match) this.fail("expected a regular expression");
    this.at += match[0].length;
    return new Value("regex", { p: match[1].replaceAll("\\/", "/"), o: match[2] });
  }

  word() {
    const word = this.name();
    const known = { true: new Value("bool", true), false: new Value("bool", false), null: NULL,
      undefined: simple("undefined"), NaN: new Value("double", "NaN"),
      Infinity: new Value("double", "Infinity") };
    if (Object.hasOwn(known, word)) return known[word];
    if (word === "new") { this.space(); return this.word(); }
    const make = Object.hasOwn(MAKERS, word) ? MAKERS[word] : undefined;
    if (!make) this.fail(`unknown word ${word}: strings stand in quotes`);
    const given = [];
    if (this.take("(")) {
      while (!this.take(")")) {
        given.push(this.value());
        if (!this.take(",")) { this.need(")"); break; }
      }
    }
    try {
      return make(...given);
    } catch (error) {
      return this.fail(`${word}: ${error.message}`);
    }
  }
}

/** Reads one value. Throws a SyntaxError that says where it is wrong. */
export function read(text) {
  const reader = new Reader(text);
  const value = reader.value();
  reader.space();
  if (reader.at < text.length) reader.fail("something follows");
  return value;
}

/** Reads a document; nothing is an empty one. */
export function readDocument(text) {
  const value = text.trim() === "" ? of({}) : read(text);
  if (value.t !== "object") throw new SyntaxError("expected a document: {…}");
  return value;
}

const text = (value) => value === undefined ? "" : String(value.v ?? "");
const need = (condition, what) => { if (!condition) throw new SyntaxError(what); };

/** A value of a type from what people write for it. */
export function make(type, written) {
  const trimmed = written.trim();
  switch (type) {
    case "string": case "code": case "symbol": return new Value(type, written);
    case "int": case "long": {
      need(/^[-+]?\d+$/.test(trimmed), "a whole number");
      const number = BigInt(trimmed), max = type === "int" ? INT_MAX : LONG_MAX;
      need(-max <= number && number < max, type === "int" ? "32 bits hold no such number" : "64 bits hold no such number");
      return new Value(type, String(number));
    }
    case "double": {
      const known = { nan: "NaN", infinity: "Infinity", "-infinity": "-Infinity", "+infinity": "Infinity" }[trimmed.toLowerCase()];
      if (known) return new Value(type, known);
      need(/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed), "a number");
      return new Value(type, doubleText(Number(trimmed)));
    }
    case "decimal":
      need(/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$|^[-+]?(nan|infinity|inf)$/i.test(trimmed), "a decimal number");
      return new Value(type, trimmed);
    case "bool":
      need(["true", "false"].includes(trimmed), "true or false");
      return new Value(type, trimmed === "true");
    case "date": {
      if (/^-?\d+$/.test(trimmed)) return new Value(type, String(BigInt(trimmed)));
      const time = Date.parse(trimmed);
      need(!Number.isNaN(time), "a date, as 2026-11-25T10:00:00.000Z, or milliseconds");
      return new Value(type, String(time));
    }
    case "objectId":
      need(/^[\da-f]{24}$/i.test(trimmed), "24 hexadecimal digits");
      return new Value(type, trimmed.toLowerCase());
    case "null": case "undefined": case "minKey": case "maxKey": return simple(type);
    case "timestamp": {
      const parts = /^(\d+)\s*[,:]\s*(\d+)$/.exec(trimmed);
      need(parts && parts.slice(1).every((part) => Number(part) < 2 ** 32), "seconds, increment");
      return new Value(type, { t: Number(parts[1]), i: Number(parts[2]) });
    }
    default: {
      const value = read(written);
      need(value.t === type, `that is ${value.t}, not ${type}`);
      return value;
    }
  }
}

const base64 = (data, why = "base64") => {
  need(/^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/.test(data), why);
  return data;
};
const hexToBase64 = (hex) => btoa(hex.match(/../g).map((two) => String.fromCharCode(parseInt(two, 16))).join(""));
const base64ToHex = (data) => Array.from(atob(data), (letter) => letter.charCodeAt(0).toString(16).padStart(2, "0")).join("");
const binary = (data, sub) => new Value("binData", { b: base64(data), s: sub });
const uuid = (written) => {
  const hex = written.replaceAll("-", "");
  need(/^[\da-f]{32}$/i.test(hex), "32 hexadecimal digits");
  return binary(hexToBase64(hex), 4);
};

const MAKERS = {
  ObjectId: (value) => make("objectId", text(value)),
  ISODate: (value) => value ? make("date", text(value)) : of(new Date()),
  Date: (value) => value ? make("date", text(value)) : of(new Date()),
  NumberInt: (value) => make("int", text(value)), Int32: (value) => make("int", text(value)),
  NumberLong: (value) => make("long", text(value)), Long: (value) => make("long", text(value)),
  NumberDouble: (value) => make("double", text(value)), Double: (value) => make("double", text(value)),
  NumberDecimal: (value) => make("decimal", text(value)), Decimal128: (value) => make("decimal", text(value)),
  Timestamp: (t, i) => t.t === "object" ? make("timestamp", `${t.get("t").v},${t.get("i").v}`) : make("timestamp", `${text(t)},${text(i)}`),
  BinData: (sub, data) => binary(text(data), Number(sub.v)),
  HexData: (sub, data) => binary(hexToBase64(text(data)), Number(sub.v)),
  UUID: (value) => uuid(text(value)),
  RegExp: (p, o) => new Value("regex", { p: text(p), o: text(o) }),
  Code: (code, scope) => scope ? new Value("codeWithScope", { c: text(code), s: scope }) : new Value("code", text(code)),
  Symbol: (value) => new Value("symbol", text(value)),
  DBPointer: (ref, id) => new Value("dbPointer", { r: text(ref), i: id.v }),
  MinKey: () => simple("minKey"), MaxKey: () => simple("maxKey"),
};

/** What an object of extended JSON stands for. */
function wrapped(fields) {
  const first = fields[0]?.[0];
  if (first === undefined || first[0] !== "$") return new Value("object", fields);
  const [[, value], second] = fields;
  const is = (count, type) => fields.length === count && (!type || value.t === type);
  try {
    switch (first) {
      case "$oid": if (is(1, "string")) return make("objectId", value.v); break;
      case "$numberInt": if (is(1, "string")) return make("int", value.v); break;
      case "$numberLong": if (is(1, "string")) return make("long", value.v); break;
      case "$numberDouble": if (is(1, "string")) return make("double", value.v); break;
      case "$numberDecimal": if (is(1, "string")) return new Value("decimal", value.v); break;
      case "$date":
        if (is(1)) return value.t === "long" || value.t === "int" ? new Value("date", value.v) : make("date", text(value));
        break;
      case "$binary":
        if (is(1, "object")) return binary(value.get("base64").v, parseInt(value.get("subType").v, 16));
        break;
      case "$uuid": if (is(1, "string")) return uuid(value.v); break;
      case "$regularExpression":
        if (is(1, "object")) return new Value("regex", { p: value.get("pattern").v, o: value.get("options").v });
        break;
      case "$timestamp":
        if (is(1, "object")) return make("timestamp", `${value.get("t").v},${value.get("i").v}`);
        break;
      case "$code":
        if (is(1, "string")) return new Value("code", value.v);
        if (is(2, "string") && second[0] === "$scope") return new Value("codeWithScope", { c: value.v, s: second[1] });
        break;
      case "$symbol": if (is(1, "string")) return new Value("symbol", value.v); break;
      case "$dbPointer":
        if (is(1, "object")) return new Value("dbPointer", { r: value.get("$ref").v, i: value.get("$id").v });
        break;
      case "$minKey": if (is(1)) return simple("minKey"); break;
      case "$maxKey": if (is(1)) return simple("maxKey"); break;
      case "$undefined": if (is(1, "bool")) return simple("undefined"); break;
    }
  } catch {
    // A document that only looks like one.
  }
  return new Value("object", fields);
}

// ---- writing

/** Canonical extended JSON. */
export function write(value) {
  const { t, v } = value, quote = JSON.stringify;
  switch (t) {
    case "object": return `{${v.map(([name, field]) => `${quote(name)}:${write(field)}`).join(",")}}`;
    case "array": return `[${v.map(write).join(",")}]`;
    case "string": return quote(v);
    case "int": return `{"$numberInt":"${v}"}`;
    case "long": return `{"$numberLong":"${v}"}`;
    case "double": return `{"$numberDouble":"${v}"}`;
    case "decimal": return `{"$numberDecimal":"${v}"}`;
    case "bool": return String(v);
    case "null": return "null";
    case "undefined": return '{"$undefined":true}';
    case "date": return `{"$date":{"$numberLong":"${v}"}}`;
    case "objectId": return `{"$oid":"${v}"}`;
    case "binData": return `{"$binary":{"base64":"${v.b}","subType":"${v.s.toString(16).padStart(2, "0")}"}}`;
    case "regex": return `{"$regularExpression":{"pattern":${quote(v.p)},"options":${quote(v.o)}}}`;
    case "timestamp": return `{"$timestamp":{"t":${v.t},"i":${v.i}}}`;
    case "code": return `{"$code":${quote(v)}}`;
    case "codeWithScope": return `{"$code":${quote(v.c)},"$scope":${write(v.s)}}`;
    case "symbol": return `{"$symbol":${quote(v)}}`;
    case "dbPointer": return `{"$dbPointer":{"$ref":${quote(v.r)},"$id":{"$oid":"${v.i}"}}}`;
    case "minKey": return '{"$minKey":1}';
    case "maxKey": return '{"$maxKey":1}';
    default: throw new TypeError(t);
  }
}

/** A date as people read it, if years have four digits. */
export function dateText(millis) {
  const date = new Date(Number(millis));
  const year = date.getUTCFullYear();
  return year >= 0 && year <= 9999 ? date.toISOString() : String(millis);
}

/** The shell's form; with `indent` on lines of their own. */
export function show(value, indent = "") {
  const { t, v } = value, quote = JSON.stringify;
  const inner = indent === null ? null : indent + "  ";
  const join = (open, parts, close) => {
    if (!parts.length) return open + close;
    const flat = `${open}${open === "{" ? " " : ""}${parts.join(", ")}${close === "}" ? " " : ""}${close}`;
    if (indent === null || flat.length + indent.length <= 72 && !flat.includes("\n")) return flat;
    return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
  };
  switch (t) {
    case "object": return join("{", v.map(([name, field]) =>
      `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name)}: ${show(field, inner)}`), "}");
    case "array": return join("[", v.map((item) => show(item, inner)), "]");
    case "string": return quote(v);
    case "int": return v;
    case "long": return `NumberLong("${v}")`;
    case "double": return /^-?\d+(\.\d+)?$/.test(v) || ["NaN", "Infinity"].includes(v) ? /[.NI]/.test(v) ? v : `${v}.0` : `NumberDouble("${v}")`;
    case "decimal": return `NumberDecimal("${v}")`;
    case "bool": case "null": case "undefined": return t === "bool" ? String(v) : t;
    case "date": return `ISODate("${dateText(v)}")`;
    case "objectId": return `ObjectId("${v}")`;
    case "binData": {
      const hex = v.s === 4 ? base64ToHex(v.b) : "";
      return hex.length === 32 ? `UUID("${hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}")` : `BinData(${v.s}, "${v.b}")`;
    }
    case "regex": return `RegExp(${quote(v.p)}, ${quote(v.o)})`;
    case "timestamp": return `Timestamp(${v.t}, ${v.i})`;
    case "code": return `Code(${quote(v)})`;
    case "codeWithScope": return `Code(${quote(v.c)}, ${show(v.s, null)})`;
    case "symbol": return `Symbol(${quote(v)})`;
    case "dbPointer": return `DBPointer(${quote(v.r)}, ObjectId("${v.i}"))`;
    case "minKey": return "MinKey()";
    case "maxKey": return "MaxKey()";
    default: throw new TypeError(t);
  }
}

/** What an input holds to edit a value: without the wrapping that its type tells. */
export function editable(value) {
  const { t, v } = value;
  switch (t) {
    case "string": case "code": case "symbol": case "int": case "long": case "double":
    case "decimal": case "objectId": return v;
    case "bool": return String(v);
    case "date": return dateText(v);
    case "timestamp": return `${v.t}, ${v.i}`;
    case "null": case "undefined": case "minKey": case "maxKey": return "";
    default: return show(value, t === "object" || t === "array" ? "" : null);
  }
}

const STEERING = /[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const WRITTEN = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** Text on one line, as what it is: what would break it, turn it round or not be seen is written out. */
export const visible = (text) => text.replace(STEERING, (letter) => WRITTEN[letter] ?? `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
/** The same of a string: blanks alone stand in quotes. */
const shownText = (text) => /^\s*$/.test(text) ? `"${visible(text)}"` : visible(text);

/** One line of a value: cut where it is long. */
export function brief(value, max = 120) {
  const { t, v } = value;
  let line;
  if (t === "object") line = v.length ? `{ ${v.slice(0, 6).map(([name, field]) => `${shownText(name)}: ${field.t === "object" || field.t === "array" ? size(field) : brief(field, 30)}`).join(", ")}${v.length > 6 ? ", …" : ""} }` : "{}";
  else if (t === "array") line = `[${v.slice(0, 8).map((item) => brief(item, 30)).join(", ")}${v.length > 8 ? `, … ${v.length}` : ""}]`;
  else if (t === "string") line = shownText(v.length > max * 2 ? v.slice(0, max * 2) : v);
  else if (["int", "long", "double", "decimal", "objectId"].includes(t)) line = v;
  else if (t === "date") line = dateText(v).replace("T", " ").replace(".000Z", "Z");
  else if (t === "binData" && v.b.length > max) line = `BinData(${v.s}, ${Math.floor(v.b.length * 3 / 4)} bytes)`;
  else line = show(value, null);
  return line.length > max ? line.slice(0, max) + "…" : line;
}

/** What a document or array has. */
export function size(value) {
  const count = value.v.length;
  return value.t === "array" ? `[${count}]` : `{${count}}`;
}

/** Whether two values have the same bytes. */
export const same = (one, other) => one === other || one !== undefined && other !== undefined && write(one) === write(other);
