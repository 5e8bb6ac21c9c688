// MongoDB's types and helpers for scripts, and what Rust asks of values: `make`, `describe`,
// `remember`. A type's inner values are private, so that a script can't change them by accident.
(function () {
    "use strict";
    const host = Object.create(null);
    Object.defineProperty(globalThis, "__frond", { value: host });
    const integers = new WeakMap();
    const give = (name, value) => Object.defineProperty(globalThis, name, {
        value, writable: true, configurable: true, enumerable: false,
    });
    // MongoDB's types are called with `new` and without.
    const type = (name, made) => {
        const callable = function (...given) { return new made(...given); };
        callable.prototype = made.prototype;
        made.prototype.constructor = callable;
        Object.defineProperty(callable, "name", { value: name });
        give(name, callable);
    };

    class ObjectId {
        #hex;
        constructor(hex) {
            if (hex === undefined) {
                hex = Math.floor(Date.now() / 1000).toString(16).padStart(8, "0");
                for (let n = 0; n < 16; n++) hex += Math.floor(Math.random() * 16).toString(16);
            } else if (hex instanceof ObjectId) {
                hex = hex.#hex;
            }
            if (!/^[0-9a-fA-F]{24}$/.test(hex)) throw new Error("invalid object id: length");
            this.#hex = String(hex).toLowerCase();
        }
        get str() { return this.#hex; }
        toString() { return `ObjectId("${this.#hex}")`; }
        valueOf() { return this.toString(); }
        toJSON() { return { $oid: this.#hex }; }
        tojson() { return this.toString(); }
        equals(other) { return other instanceof ObjectId && other.#hex === this.#hex; }
        getTimestamp() { return new Date(parseInt(this.#hex.slice(0, 8), 16) * 1000); }
        static describe(it) { return #hex in it ? ["ObjectId", it.#hex] : null; }
    }

    class NumberLong {
        #value;
        constructor(value, top, bottom) {
            if (top !== undefined) {
                this.#value = BigInt.asIntN(64, BigInt(top >>> 0) << 32n | BigInt(bottom >>> 0));
            } else if (value === undefined) {
                this.#value = 0n;
            } else if (typeof value === "bigint") {
                this.#value = value;
            } else if (typeof value === "string") {
                if (!/^\s*[+-]?[0-9]{1,19}\s*$/.test(value)) {
                    throw new Error("could not convert string to long long");
                }
                this.#value = BigInt(value);
            } else if (value instanceof NumberLong) {
                this.#value = value.#value;
            } else {
                const number = Math.trunc(Number(value));
                this.#value = Number.isNaN(number) ? 0n
                    : number >= 2 ** 63 ? 2n ** 63n - 1n
                    : number <= -(2 ** 63) ? -(2n ** 63n) : BigInt(number);
            }
            if (BigInt.asIntN(64, this.#value) !== this.#value) {
                throw new Error("could not convert string to long long");
            }
        }
        get floatApprox() { return Number(this.#value); }
        get top() { return Number(BigInt.asIntN(32, this.#value >> 32n)); }
        get bottom() { return Number(BigInt.asUintN(32, this.#value)); }
        toNumber() { return Number(this.#value); }
        valueOf() { return Number(this.#value); }
        toString() {
            const isSmall = -(2n ** 31n) <= this.#value && this.#value < 2n ** 31n;
            return isSmall ? `NumberLong(${this.#value})` : `NumberLong("${this.#value}")`;
        }
        tojson() { return this.toString(); }
        toJSON() { return { $numberLong: String(this.#value) }; }
        exactValueString() { return String(this.#value); }
        compare(other) {
            other = new NumberLong(other);
            return this.#value < other.#value ? -1 : this.#value > other.#value ? 1 : 0;
        }
        static describe(it) { return #value in it ? ["NumberLong", String(it.#value)] : null; }
    }

    class NumberInt {
        #value;
        constructor(value) { this.#value = Number(value === undefined ? 0 : value) | 0; }
        toNumber() { return this.#value; }
        valueOf() { return this.#value; }
        toString() { return `NumberInt(${this.#value})`; }
        tojson() { return this.toString(); }
        toJSON() { return this.#value; }
        static describe(it) { return #value in it ? ["NumberInt", it.#value] : null; }
    }

    class NumberDecimal {
        #text;
        constructor(value) {
            const isText = value !== undefined && value !== null;
            this.#text = isText ? String(value instanceof NumberDecimal ? value.#text
                : value instanceof NumberLong ? value.exactValueString() : value) : "0";
        }
        toString() { return `NumberDecimal("${this.#text}")`; }
        tojson() { return this.toString(); }
        toJSON() { return { $numberDecimal: this.#text }; }
        toNumber() { return Number(this.#text); }
        static describe(it) { return #text in it ? ["NumberDecimal", it.#text] : null; }
    }

    const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const base64OfHex = (hex) => {
        let text = "";
        for (let at = 0; at < hex.length; at += 6) {
            const part = hex.slice(at, at + 6);
            const bits = parseInt(part.padEnd(6, "0"), 16);
            const four = DIGITS[bits >> 18] + DIGITS[bits >> 12 & 63] + DIGITS[bits >> 6 & 63]
                + DIGITS[bits & 63];
            text += four.slice(0, part.length / 2 + 1).padEnd(4, "=");
        }
        return text;
    };
    const hexOfBase64 = (text) => {
        let hex = "";
        for (let at = 0; at < text.length; at += 4) {
            const part = text.slice(at, at + 4).replace(/=+$/, "");
            let bits = 0;
            for (let n = 0; n < 4; n++) bits = bits << 6 | Math.max(0, DIGITS.indexOf(part[n] || "A"));
            hex += bits.toString(16).padStart(6, "0").slice(0, (part.length - 1) * 2);
        }
        return hex;
    };
    class BinData {
        #subtype;
        #base64;
        constructor(subtype, base64) {
            if (!(0 <= subtype && subtype <= 255)) {
                throw new Error("BinData subtype must be between 0 and 255");
            }
            if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || base64.length % 4 !== 0) {
                throw new Error("BinData could not decode base64 parameter");
            }
            this.#subtype = subtype | 0;
            this.#base64 = String(base64);
        }
        get type() { return this.#subtype; }
        get len() { return this.length(); }
        subtype() { return this.#subtype; }
        length() { return this.#base64.replace(/=+$/, "").length * 3 >> 2; }
        base64() { return this.#base64; }
        hex() { return hexOfBase64(this.#base64); }
        toString() {
            const hex = this.#subtype === 4 ? this.hex() : "";
            return this.#subtype === 4 && hex.length === 32
                ? `UUID("${hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}")`
                : `BinData(${this.#subtype},"${this.#base64}")`;
        }
        tojson() { return this.toString(); }
        toJSON() { return { $binary: this.#base64, $type: this.#subtype.toString(16) }; }
        static describe(it) { return #base64 in it ? ["BinData", it.#subtype, it.#base64] : null; }
    }

    class Timestamp {
        constructor(t, i) {
            this.t = t === undefined ? 0 : Number(t);
            this.i = i === undefined ? 0 : Number(i);
        }
        getTime() { return this.t; }
        getInc() { return this.i; }
        toString() { return `Timestamp(${this.t}, ${this.i})`; }
        tojson() { return this.toString(); }
    }
    class DBPointer {
        constructor(ns, id) { this.ns = ns; this.id = id; }
        toString() { return `DBPointer("${this.ns}", ${this.id})`; }
        tojson() { return this.toString(); }
    }
    class DBRef {
        constructor(collection, id, database) {
            this.$ref = collection;
            this.$id = id;
            if (database !== undefined) this.$db = database;
        }
        getCollection() { return this.$ref; }
        getRef() { return this.$ref; }
        getId() { return this.$id; }
        getDb() { return this.$db; }
        toString() { return `DBRef(${host.text(this.$ref)}, ${host.text(this.$id)})`; }
        tojson() { return this.toString(); }
    }
    class Code {
        constructor(code, scope) {
            this.code = String(code);
            if (scope !== undefined) this.scope = scope;
        }
        toString() { return this.code; }
    }
    class MinKey { tojson() { return '{ "$minKey" : 1 }'; } }
    class MaxKey { tojson() { return '{ "$maxKey" : 1 }'; } }

    const types = { ObjectId, NumberLong, NumberInt, NumberDecimal, BinData, Timestamp, DBPointer,
        DBRef, Code, MinKey, MaxKey };
    for (const name of Object.keys(types)) type(name, types[name]);
    give("HexData", (subtype, hex) => new BinData(subtype, base64OfHex(String(hex))));
    give("MD5", (hex) => new BinData(5, base64OfHex(String(hex))));
    give("UUID", (text) => {
        let hex = text === undefined ? "" : String(text).replace(/-/g, "");
        if (text === undefined) {
            for (let n = 0; n < 32; n++) {
                hex += n === 12 ? "4" : Math.floor(Math.random() * (n === 16 ? 4 : 16)
                    + (n === 16 ? 8 : 0)).toString(16);
            }
        }
        if (!/^[0-9a-fA-F]{32}$/.test(hex)) throw new Error("Invalid UUID string");
        return new BinData(4, base64OfHex(hex));
    });
    give("ISODate", (text) => {
        if (text === undefined) return new Date();
        const parts = /^\s*(\d{4})-?(\d\d)-?(\d\d)([T ](\d\d)(:?(\d\d)(:?(\d\d(\.\d+)?))?)?(Z|([+-])(\d\d):?(\d\d)?)?)?\s*$/
            .exec(text);
        if (!parts) throw new Error(`invalid ISO date: ${text}`);
        const seconds = parseFloat(parts[9] || "0");
        const time = Date.UTC(+parts[1], +parts[2] - 1, +parts[3], +(parts[5] || 0),
            +(parts[7] || 0), Math.floor(seconds), Math.round(seconds % 1 * 1000));
        const offset = (+(parts[13] || 0) * 60 + +(parts[14] || 0)) * (parts[12] === "-" ? -1 : 1);
        return new Date(time - offset * 60000);
    });

    const text = (value, depth) => {
        if (depth > 100) throw new Error("tojson: too deep");
        if (value === undefined) return "undefined";
        if (value === null || typeof value === "number" || typeof value === "boolean") {
            return String(value);
        }
        if (typeof value === "string") return JSON.stringify(value);
        if (typeof value === "function") return String(value);
        if (value instanceof Date) return `ISODate("${value.toISOString()}")`;
        if (value instanceof RegExp) return String(value);
        if (typeof value.tojson === "function") return value.tojson();
        if (Array.isArray(value)) {
            let inner = "";
            for (let n = 0; n < value.length; n++) inner += (n ? ", " : " ") + text(value[n], depth + 1);
            return inner ? `[${inner} ]` : "[ ]";
        }
        let inner = "";
        for (const name of Object.keys(value)) {
            inner += `${inner ? ", " : " "}${JSON.stringify(name)} : ${text(value[name], depth + 1)}`;
        }
        return inner ? `{${inner} }` : "{ }";
    };
    host.text = (value) => text(value, 0);
    for (const name of ["tojson", "tojsononeline", "tojsonObject"]) give(name, host.text);
    // There is no log that a script may write to.
    for (const name of ["print", "printjson", "printjsononeline", "gc"]) give(name, () => undefined);
    give("isString", (value) => typeof value === "string");
    give("isNumber", (value) => typeof value === "number");
    give("isObject", (value) => typeof value === "object");
    give("sleep", (millis) => {
        const end = Date.now() + Number(millis);
        while (Date.now() < end);
    });
    give("doassert", (message) => { throw new Error(String(message)); });
    give("assert", (holds, message) => {
        if (!holds) throw new Error(`assert failed${message === undefined ? "" : ` : ${message}`}`);
    });
    Array.contains = (array, value) => array.indexOf(value) !== -1;
    Array.unique = (array) => array.filter((value, at) => array.indexOf(value) === at);
    Array.sum = (array) => array.length ? array.reduce((sum, value) => sum + value) : null;
    Array.avg = (array) => array.length ? Array.sum(array) / array.length : null;

    // JavaScript knows these options; others (`x`) mean nothing to it.
    const flags = (options) => options.replace(/[^imsu]/g, "");
    // A pattern of PCRE that JavaScript doesn't have: it may be handed on, and not be searched with.
    class ForeignPattern {
        #pattern;
        #options;
        constructor(pattern, options) { this.#pattern = pattern; this.#options = options; }
        get source() { return this.#pattern; }
        get flags() { return flags(this.#options); }
        exec() { throw new SyntaxError(`no pattern of JavaScript: ${this}`); }
        test() { return this.exec(); }
        toString() { return `/${this.#pattern}/${this.#options}`; }
        static describe(it) {
            return #pattern in it ? ["RegExp", it.#pattern, flags(it.#options)] : null;
        }
    }
    const pattern = (source, options) => {
        try {
            return new RegExp(source, flags(options));
        } catch (error) {
            if (error instanceof SyntaxError) return new ForeignPattern(source, options);
            throw error;
        }
    };
    // A function that a document has: who stores it isn't who runs scripts, so it is compiled when
    // a script calls it, and never only because a script was handed the document.
    const stored = new WeakMap();
    const recallStored = stored.get.bind(stored);
    const call = Reflect.apply;
    const storedFunction = (code) => {
        const made = function (...given) { return call(host.compile(code), this, given); };
        host.define(made, "toString", () => code);
        Object.defineProperty(made, "toString", { enumerable: false });
        stored.set(made, code);
        return made;
    };
    const makers = {
        Date: (millis) => new Date(millis),
        RegExp: pattern,
        Function: storedFunction,
        DBPointer: (ns, id) => new DBPointer(ns, new ObjectId(id)),
        BinData: (subtype, base64) => new BinData(subtype, base64),
    };
    host.make = (kind, first, second) => {
        const maker = makers[kind];
        return maker ? maker(first, second) : new types[kind](first === null ? undefined : first, second);
    };
    host.define = (object, name, value) => {
        Object.defineProperty(object, name, {
            value, writable: true, configurable: true, enumerable: true,
        });
    };
    host.remember = (object, names) => { integers.set(object, names); };
    host.wellFormed = (value) => value.toWellFormed();

    const sourceOf = Function.prototype.toString;
    const apply = Reflect.apply;
    const recall = integers.get.bind(integers);
    // An array: null and the names of integers; or a type's name and what makes it up.
    host.describe = (it) => {
        if (typeof it === "bigint") {
            if (BigInt.asIntN(64, it) !== it) throw new Error("a bigint of more than 64 bits");
            return ["NumberLong", String(it)];
        }
        if (it === globalThis.MinKey) return ["MinKey"];
        if (it === globalThis.MaxKey) return ["MaxKey"];
        if (typeof it === "function") {
            const code = recallStored(it);
            return ["Function", code === undefined ? apply(sourceOf, it, []) : code];
        }
        const names = recall(it);
        if (names !== undefined) return [null, names];
        if (Array.isArray(it)) return null;
        const found = ObjectId.describe(it) || NumberLong.describe(it) || NumberInt.describe(it)
            || NumberDecimal.describe(it) || BinData.describe(it) || ForeignPattern.describe(it);
        if (found) return found;
        if (it instanceof Date) return ["Date", Date.prototype.getTime.call(it)];
        if (it instanceof RegExp) return ["RegExp", it.source, it.flags.replace(/[^imsu]/g, "")];
        if (it instanceof Timestamp) return ["Timestamp", Number(it.t), Number(it.i)];
        if (it instanceof DBPointer && it.id instanceof ObjectId) {
            return ["DBPointer", String(it.ns), it.id.str];
        }
        if (it instanceof MinKey) return ["MinKey"];
        if (it instanceof MaxKey) return ["MaxKey"];
        if (it instanceof Code) {
            return it.scope === undefined ? ["Function", it.code] : ["Code", it.code, Object(it.scope)];
        }
        if (it instanceof Number || it instanceof String || it instanceof Boolean) {
            return ["Wrapped", it.valueOf()];
        }
        return null;
    };
})();
