// Users and their roles, and the roles that were made here.

import { ask as command, run } from "../api.js";
import { ask, attempt, button, confirm, field, h, put, tell } from "../dom.js";
import { refresh, state, writable } from "../main.js";
import { read, show as text } from "../values.js";

export async function show(place) {
  const [users, roles] = await Promise.all([
    command("admin", { usersInfo: { forAllDBs: true } }, place),
    run("admin", { rolesInfo: 1, showBuiltinRoles: true, showPrivileges: true }, place),
  ]);
  const builtin = roles.get("roles").v.filter((it) => it.get("isBuiltin").v).map((it) => it.get("role").v);
  const own = (await Promise.all(["admin", ...state.databases.filter((it) => it !== "admin")].slice(0, 200).map((name) =>
    run(name, { rolesInfo: 1, showPrivileges: true }, place).then((it) => it.get("roles").v).catch(() => [])))).flat();
  const sorted = users.users.sort((a, b) => `${a.db} ${a.user}` < `${b.db} ${b.user}` ? -1 : 1);
  put(place.main, h("div.page", h("div.head", h("h1", "Users and roles"), h("span.end"), writable() && button("New user", () => edit(null, builtin), { glyph: "plus" }), writable() && button("New role", newRole, { glyph: "plus" })),
    !state.session.auth && h("p.card", h("span.badge.changed", "no logins"), " The server was started without --auth: who reaches it may do everything, whatever stands here."),
    h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Users" }, h("table", h("thead", h("tr", h("th", "User"), h("th", "Database"), h("th", "Roles"), h("th", "Logs in by"), h("th", h("span.hidden", "Actions")))),
      h("tbody", sorted.length ? sorted.map((user) => h("tr", h("td", user.user), h("td", user.db), h("td", h("span.row", user.roles.map((it) => h("span.badge", it.db === user.db ? it.role : `${it.role}@${it.db}`)))),
        h("td.small", (user.mechanisms ?? []).join(", ")),
        h("td", writable() && h("span.row", button("", () => edit(user, builtin), { kind: "quiet.square", glyph: "edit", title: `Change ${user.user}` }), button("", () => drop(user), { kind: "quiet.square", glyph: "trash", title: `Drop ${user.user}` })))))
        : h("tr", h("td", { colspan: 5 }, "No users yet."))))),
    h("section.stack", h("h2", "Roles made here"), own.length ? own.map((role) => h("details.card", h("summary", h("strong", role.get("role").v), " ", h("span.soft", role.get("db").v)),
      h("pre", text(role.get("privileges"))), h("p.small", "Includes ", text(role.get("roles"), null)), writable() && button("Drop", () => dropRole(role), { kind: "danger" })))
      : h("p.soft", "None."))));
}

const rolesOf = (words) => words.split(/[\s,]+/).filter(Boolean).map((word) => {
  const at = word.lastIndexOf("@");
  return at < 0 ? word : { role: word.slice(0, at), db: word.slice(at + 1) };
});

async function edit(user, builtin) {
  const done = await ask(user ? `Change ${user.user}` : "New user", () => {
    const name = h("input", { required: true, value: user?.user ?? "", disabled: Boolean(user), autocomplete: "off" });
    const database = h("input", { required: true, value: user?.db ?? "admin", disabled: Boolean(user), autocomplete: "off" });
    const password = h("input", { type: "password", required: !user, autocomplete: "new-password" });
    const roles = h("input", { value: user ? user.roles.map((it) => it.db === user.db ? it.role : `${it.role}@${it.db}`).join(", ") : "", autocomplete: "off", list: "builtin" });
    return {
      body: h("div.stack", field("Name", name), field("Database", database), field(user ? "New password" : "Password", password, { hint: user && "Left empty it stays" }),
        field("Roles", roles, { hint: "readWrite@shop, readAnyDatabase; without @ of the user's database" }), h("datalist", { id: "builtin" }, builtin.map((it) => h("option", { value: it })))),
      take: () => command(database.value, { [user ? "updateUser" : "createUser"]: name.value, pwd: password.value || undefined, roles: rolesOf(roles.value) }),
    };
  }, { agree: user ? "Save" : "Create" });
  if (done) { tell("Saved"); refresh(); }
}

async function drop(user) {
  if (!await confirm(`Drop ${user.user}?`, `Who is logged in as ${user.user}@${user.db} is logged out.`, "Drop")) return;
  if (await attempt(() => command(user.db, { dropUser: user.user }))) refresh();
}

async function newRole() {
  const done = await ask("New role", () => {
    const name = h("input", { required: true, autocomplete: "off" });
    const database = h("input", { required: true, value: "admin", autocomplete: "off" });
    const privileges = h("textarea", { rows: 8, spellcheck: "false", value: '[\n  { resource: { db: "shop", collection: "", branch: "dev/*" },\n    actions: ["find", "insert", "update", "remove", "commit"] }\n]' });
    const roles = h("input", { autocomplete: "off" });
    return {
      body: h("div.stack", field("Name", name), field("Database", database), field("Privileges", privileges), field("Includes the roles", roles)),
      take: () => run(database.value, { createRole: name.value, privileges: read(privileges.value), roles: rolesOf(roles.value) }),
    };
  }, { agree: "Create", wide: true });
  if (done) { tell("Created"); refresh(); }
}

async function dropRole(role) {
  if (!await confirm(`Drop the role ${role.get("role").v}?`, "Who has it loses what it allows, at once.", "Drop")) return;
  if (await attempt(() => run(role.get("db").v, { dropRole: role.get("role").v }))) refresh();
}

