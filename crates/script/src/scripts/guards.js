// Loops of the library don't ask whether to go on, and an array may be long without taking memory:
// `Array.prototype.indexOf.call({length: 2 ** 53})` would run for years. Such loops are guarded
// here: by the length, which must be the value of an own property and not a getter's; and searches
// of strings by how many comparisons they may take.
(function () {
    "use strict";
    const apply = Reflect.apply;
    const property = Object.getOwnPropertyDescriptor;
    const isArray = Array.isArray;
    const LENGTH_MAX = 2 ** 24;
    const COMPARISONS_MAX = 2 ** 31;
    const refuse = () => { throw new RangeError("too long an array for server-side JavaScript"); };
    const isLong = (it) => {
        if (typeof it === "string") return it.length > LENGTH_MAX * 4;
        if (it === null || typeof it !== "object" && typeof it !== "function") return false;
        const length = property(it, "length");
        if (length === undefined) return !isArray(it) && "length" in it;
        return !("value" in length) || typeof length.value === "object"
            || Number(length.value) > LENGTH_MAX;
    };
    // A script is asked whether to go on each ten thousand steps: a call that takes long is to be many.
    const pay = (steps) => { for (let left = steps; left > 0; left--); };
    const sizeOf = (it) => typeof it === "string" || isArray(it) ? it.length : 0;
    const guard = (holder, name, check) => {
        const original = holder[name];
        if (typeof original !== "function") return;
        const guarded = function (...given) {
            check(this, given);
            pay(sizeOf(this) / 16);
            return apply(original, this, given);
        };
        Object.defineProperty(guarded, "name", { value: name });
        Object.defineProperty(holder, name, { value: guarded, writable: true, configurable: true });
    };
    const arrays = ["fill", "includes", "indexOf", "lastIndexOf", "find", "findIndex", "findLast",
        "findLastIndex", "join", "toLocaleString", "shift", "unshift", "reverse", "toReversed",
        "sort", "toSorted", "slice", "splice", "toSpliced", "copyWithin", "with", "every", "some",
        "forEach", "map", "filter", "reduce", "reduceRight"];
    for (const name of arrays) guard(Array.prototype, name, (it) => { if (isLong(it)) refuse(); });
    // What the library flattens and joins may hold what is long.
    const given = (it, all) => {
        if (isLong(it)) refuse();
        for (let at = 0; at < all.length; at++) if (isLong(all[at])) refuse();
    };
    guard(Array.prototype, "concat", given);
    const flat = (it, depth, made) => {
        for (let at = 0; at < it.length; at++) {
            if (!(at in it)) continue;
            if (isArray(it[at]) && depth >= 1) flat(it[at], depth - 1, made);
            else made[made.length] = it[at];
        }
        return made;
    };
    const define = (holder, name, value) => Object.defineProperty(holder, name, {
        value, writable: true, configurable: true,
    });
    define(Array.prototype, "flat", function flat_(depth) {
        return flat(this, depth === undefined ? 1 : Number(depth), []);
    });
    define(Array.prototype, "flatMap", function flatMap(map, self) {
        return flat(this.map(map, self), 1, []);
    });
    guard(Array, "from", (_, all) => given(null, all));
    const stringify = (_, all) => { if (isArray(all[1]) && all[1].length > 2 ** 16) refuse(); };
    guard(JSON, "stringify", stringify);
    guard(Reflect, "apply", (_, all) => given(null, all));
    define(String, "raw", function raw(parts, ...values) {
        let text = "";
        for (let at = 0; at < parts.raw.length; at++) {
            text += (at ? String(at <= values.length ? values[at - 1] : "") : "") + parts.raw[at];
        }
        return text;
    });
    const search = (it, all) => {
        const sought = all[0];
        if (typeof it === "string" && typeof sought === "string") {
            if (it.length * sought.length > COMPARISONS_MAX) refuse();
            pay(it.length * sought.length / 2 ** 16);
        } else if (typeof sought !== "string" && String(it).length > LENGTH_MAX) {
            refuse();
        }
    };
    for (const name of ["indexOf", "lastIndexOf", "includes", "split", "replaceAll", "replace"]) {
        guard(String.prototype, name, search);
    }
    // Iterators' own loops; MongoDB's scripts have none of these.
    const iterators = globalThis.Iterator && globalThis.Iterator.prototype;
    for (const name of ["drop", "take", "every", "some", "find", "filter", "flatMap", "forEach",
        "map", "reduce", "toArray"]) {
        if (iterators) delete iterators[name];
    }
    for (const name of ["Iterator", "Atomics", "Promise", "SharedArrayBuffer", "queueMicrotask"]) {
        delete globalThis[name];
    }
    // What Rust calls stays what it is, whatever a script does.
    Object.freeze(globalThis.__frond);
})();
