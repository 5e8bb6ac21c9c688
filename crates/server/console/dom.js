// Building the page. Whatever comes from the database becomes text nodes and properties, never
// markup: there is no other way to make an element here.

/** Makes an element: h("button.primary", {onclick, "aria-label": "…"}, "Save", …). */
export function h(what, ...rest) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElement(tag || "div"), classes, rest);
}

/** The same of a drawing. */
export function s(what, ...rest) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), classes, rest);
}

function fill(element, classes, rest) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const it of rest.flat(Infinity)) {
    if (it === null || it === undefined || it === false) continue;
    if (it instanceof Node) element.append(it);
    else if (typeof it === "object") for (const [name, value] of Object.entries(it)) set(element, name, value);
    else element.append(String(it));
  }
  return element;
}

function set(element, name, value) {
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "value" || name === "checked" || name === "indeterminate") element[name] = value;
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
}

/** Replaces what an element holds. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((it) => it !== null && it !== undefined && it !== false)
    .map((it) => it instanceof Node ? it : document.createTextNode(String(it))));
  return element;
}

const ICONS = {
  database: "M3 5c0-1.7 4-3 9-3s9 1.3 9 3v14c0 1.7-4 3-9 3s-9-1.3-9-3zM3 5c0 1.7 4 3 9 3s9-1.3 9-3M3 12c0 1.7 4 3 9 3s9-1.3 9-3",
  branch: "M6 3v12M6 15a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 9c0 6-12 3-12 9",
  table: "M3 5h18v14H3zM3 10h18M9 10v9",
  gauge: "M4 18a9 9 0 1 1 16 0M12 14l4-5",
  users: "M9 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM2 21c0-4 3-6 7-6s7 2 7 6M16 4.5a4 4 0 0 1 0 7M18 15.5c2.5.7 4 2.5 4 5.5",
  plus: "M12 5v14M5 12h14", close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1", trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  history: "M3 12a9 9 0 1 0 3-6.7L3 8M3 3v5h5M12 7v5l4 2", menu: "M4 6h16M4 12h16M4 18h16",
  edit: "M4 20h4L20 8l-4-4L4 16z", refresh: "M20 11a8 8 0 1 0-2 6M20 4v7h-7", merge: "M6 3v18M6 12c0-4 12-2 12-9M18 3l-3 3M18 3l3 3",
};

/** A drawing of one of the icons; what it means stands beside it, or in the button's label. */
export function icon(name) {
  return s("svg.icon", { viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, s("path", { d: ICONS[name] }));
}

/** A button. */
export function button(label, onclick, { kind = "", glyph, title, disabled, pressed } = {}) {
  const only = glyph && !label;
  return h(`button${kind ? "." + kind : ""}`, { type: "button", onclick, title, disabled,
    "aria-label": only ? title : undefined, "aria-pressed": pressed }, glyph && icon(glyph), label);
}

let fields = 0;
/** An input with its label. */
export function field(label, input, { wide, hint } = {}) {
  input.id ||= `field-${++fields}`;
  const described = hint && h("span.hint", { id: `${input.id}-hint` }, hint);
  if (described) input.setAttribute("aria-describedby", described.id);
  return h(`div.field${wide ? ".wide" : ""}`, h("label", { for: input.id }, label), input, described);
}

/** Says something for a while; also to who can't see it. */
export function tell(message, { error = false, action } = {}) {
  const box = document.getElementById(error ? "alerts" : "notices");
  const close = () => note.remove();
  // What an earlier note would undo isn't the last thing any more.
  if (action) for (const earlier of box.querySelectorAll(".acts")) earlier.remove();
  const note = h(`div.note${error ? ".error" : ""}${action ? ".acts" : ""}`, h("p", message),
    action && button(action.label, () => { close(); action.run(); }, { kind: "quiet" }),
    button("", close, { kind: "quiet.square", glyph: "close", title: "Dismiss" }));
  box.append(note);
  while (box.children.length > 4) box.firstChild.remove();
  if (!error) setTimeout(close, action ? 12000 : 6000);
}

/** Does something and tells of what goes wrong; undefined then. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") tell(error.message, { error: true });
    return undefined;
  }
}

/** Asks in a dialog; resolves to what `form` says when it is agreed to, or to undefined. */
export function ask(title, build, { agree = "OK", danger = false, wide = false } = {}) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    let result;
    const why = h("p.why", { role: "alert" });
    const { body, take } = build();
    const submit = async (event) => {
      event.preventDefault();
      why.textContent = "";
      go.disabled = true;
      try {
        result = await take();
        dialog.close();
      } catch (error) {
        why.textContent = error.message;
      }
      go.disabled = false;
    };
    const go = h(`button.${danger ? "danger" : "primary"}`, { type: "submit" }, agree);
    const heading = h("h2", { id: "dialog-title" }, title);
    const dialog = h(`dialog${wide ? ".wide" : ""}`, { "aria-labelledby": "dialog-title" },
      h("form", { onsubmit: submit }, heading, body, why,
        h("div.actions", button("Cancel", () => dialog.close(), { kind: "quiet" }), go)));
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      before?.focus?.();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("[autofocus], input, textarea, select, button.primary")?.focus();
  });
}

/** Asks whether to do what can't be undone, or only with effort. */
export const confirm = (title, words, agree, danger = true) =>
  ask(title, () => ({ body: h("p", words), take: () => true }), { agree, danger });

/** Arrows move the focus among what `find` gives; the others are left out of the tab order. */
export function roving(container, find, horizontal = false) {
  const [back, on] = horizontal ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  container.addEventListener("keydown", (event) => {
    const items = [...container.querySelectorAll(find)];
    const at = items.indexOf(document.activeElement);
    if (at < 0) return;
    const next = { [back]: at - 1, [on]: at + 1, Home: 0, End: items.length - 1 }[event.key];
    if (next === undefined || !items[next]) return;
    event.preventDefault();
    items[at].tabIndex = -1;
    items[next].tabIndex = 0;
    items[next].focus();
  });
}

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
/** How long ago, in a few letters. */
export function ago(date) {
  const seconds = Math.round((Date.now() - date.getTime()) / 1000);
  if (seconds < 1) return "now";
  if (seconds > 60 * 86400) return date.toISOString().slice(0, 10);
  const [unit, name] = UNITS.find(([unit]) => seconds >= unit);
  return `${Math.floor(seconds / unit)} ${name} ago`;
}

/** A time with the exact one beside it. */
export const time = (date) => h("time", { datetime: date.toISOString(), title: date.toISOString() }, ago(date));

/** Bytes for people. */
export function bytes(count) {
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (count < 1024) return `${count < 10 && unit !== "B" ? count.toFixed(1) : Math.round(count)} ${unit}`;
    count /= 1024;
  }
  return `${count.toFixed(1)} TB`;
}

/** A number with its thousands apart. */
export const number = (count) => Number(count).toLocaleString("en-US");
