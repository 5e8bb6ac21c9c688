// How Rust calls functions: `invoke` by a function's source, `explain` for what one threw.
(function () {
    "use strict";
    const host = globalThis.__frond;
    const functions = Object.create(null);
    const run = eval;
    const apply = Reflect.apply;
    const Body = Function;

    // Where the parenthesis that `text` begins with is closed.
    const closing = (text) => {
        let open = 0;
        for (let at = 0; at < text.length; at++) {
            if (text[at] === "(") open++;
            if (text[at] === ")" && --open === 0) return at;
        }
        return -1;
    };
    // Without the comments before it.
    const bare = (source) => {
        let text = source.trim();
        for (;;) {
            const end = text.startsWith("/*") ? text.indexOf("*/") + 1
                : text.startsWith("//") ? text.indexOf("\n") : 0;
            if (end <= 0) return text;
            text = text.slice(end + 1).trim();
        }
    };
    const isArrow = (text) => {
        if (/^(async\s+)?[A-Za-z_$][\w$]*\s*=>/.test(text)) return true;
        return text[0] === "(" && /^\s*=>/.test(text.slice(closing(text) + 1));
    };
    const body = (text) => {
        try {
            return new Body(text);
        } catch (error) {
            if (error instanceof SyntaxError) return null;
            throw error;
        }
    };
    // The source of a function; an expression; or statements, of which the last may be the value.
    const parsed = (source) => {
        let text = bare(source);
        while (text.endsWith(";")) text = text.slice(0, -1).trim();
        if (/^(async\s+)?function\b/.test(text) || isArrow(text)) {
            const made = run(`(${text}\n)`);
            if (typeof made === "function") return made;
        }
        const expression = body(`return (${text}\n)`);
        if (expression) return expression;
        let end = text.length;
        for (let tries = 0; tries < 16; tries++) {
            end = text.lastIndexOf(";", end - 1);
            if (end < 0) break;
            const last = text.slice(end + 1);
            const made = /^\s*return\b/.test(last) ? null
                : body(`${text.slice(0, end + 1)} return (${last}\n)`);
            if (made) return made;
        }
        // With its last semicolon, which may be a statement.
        return new Body(source);
    };
    host.compile = (source) => {
        const known = functions[source];
        if (known !== undefined) return known;
        return functions[source] = parsed(source);
    };
    host.invoke = (source, self, list) => {
        const called = host.compile(source);
        if (self !== null && self !== undefined) globalThis.obj = self;
        return apply(called, self === null || self === undefined ? {} : self, list);
    };
    host.holds = (source, self) => !!host.invoke(source, self, []);
    host.explain = (thrown) => {
        if (!(thrown instanceof Error)) return `uncaught exception: ${String(thrown)}`.slice(0, 4096);
        const stack = typeof thrown.stack === "string" ? thrown.stack : "";
        return `${String(thrown).slice(0, 4096)} :\n${stack.slice(0, 1024)}`;
    };
})();
