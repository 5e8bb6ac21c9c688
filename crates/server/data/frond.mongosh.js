// Versions in mongosh: db.commit(), db.log(), db.branches(), db.diff(), db.merge() and others.
//
// `frond shell` starts mongosh with this script; elsewhere `frond shell --print-script` prints it,
// and `load("frond.mongosh.js")` runs it. db.frondHelp() lists what it adds.
//
// Each method sends a command of docs/commands.md, and returns what the server answers, or of a list
// its array: only how the shell shows it is different. A collection that is called as a method is
// there, too: db.log() are the versions, db.log.find() are the documents of a collection "log".

(() => {
  const SHORT_ID_LETTERS = 10;
  const DOCUMENT_COLUMNS = 92;
  const VALUE_COLUMNS = 40;

  /** The same value, shown by mongosh as `text`. */
  function shownAs(value, text) {
    const show = { value: () => text, enumerable: false };
    Object.defineProperty(value, Symbol.for("nodejs.util.inspect.custom"), show);
    return value;
  }

  /** What was stored, without what could steer a terminal. Line breaks stay. */
  function plain(text) {
    return String(text).replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, (character) => {
      return "\\u{" + character.codePointAt(0).toString(16) + "}";
    });
  }

  function cut(text, columns) {
    const letters = Array.from(text);
    return letters.length <= columns ? text : letters.slice(0, columns - 1).join("") + "…";
  }

  function json(value, columns) {
    return cut(plain(EJSON.stringify(value, { relaxed: true })).replace(/\n/g, "\\n"), columns);
  }

  function counted(count, noun) {
    return `${count} ${noun}${count === 1 ? "" : "s"}`;
  }

  function shortId(id) {
    return id ? id.slice(0, SHORT_ID_LETTERS) : "no commits yet";
  }

  function repositoryOf(database) {
    return database.getName().split("@")[0];
  }

  /** A branch in the name of a database: what drivers refuse there is encoded. */
  function driverName(branch) {
    return branch.replace(/[%/\\. "$*<>:|?]/g, (character) => {
      return "%" + character.charCodeAt(0).toString(16).toUpperCase();
    });
  }

  /** Takes `options` as a text (then it is the field `name`), as a document, or not at all. */
  function fields(options, name) {
    return typeof options === "string" ? { [name]: options } : { ...options };
  }

  /** Who commits, if it isn't said: as with the command line. */
  function author(database) {
    const { FROND_AUTHOR: named, FROND_LOGIN_NAME: ofSystem } = process.env;
    // Of a user who has logged in the server knows the name.
    const name = named || (isLoggedIn(database) ? "" : ofSystem);
    return name ? { author: name } : {};
  }

  function isLoggedIn(database) {
    return database.runCommand({ connectionStatus: 1 }).authInfo.authenticatedUsers.length > 0;
  }

  function commitLine(commit) {
    const date = commit.timestamp.toISOString().slice(0, 19).replace("T", " ");
    const message = plain(commit.message).split("\n")[0];
    return `${shortId(commit.commitId)}  ${date}  ${cut(plain(commit.author), 24)}  ${message}`;
  }

  /** The rows of a $diff, as `frond diff` prints them. */
  function diffText(rows) {
    const lines = [];
    let collection = null;
    const marks = { added: "+", removed: "-" };
    for (const row of rows) {
      const mark = marks[row.change] ?? "~";
      if (row.collection !== collection) {
        collection = row.collection;
        const isWhole = row.kind === "collection";
        const what = !isWhole ? "" : mark === "+" ? "  (new collection)" : "  (dropped)";
        lines.push(plain(collection) + what);
      }
      if (row.kind === "document") {
        const shown = mark === "+" ? row.after : mark === "-" ? row.before : row._id;
        lines.push(`  ${mark} ${json(shown ?? row._id, DOCUMENT_COLUMNS)}`);
        for (const change of row.changes ?? []) {
          lines.push("      " + fieldText(change));
        }
      } else if (row.kind === "index") {
        lines.push(`  ${mark} index ${plain(row.name)}`);
      } else if (row.kind === "options") {
        lines.push("  ~ options");
      }
    }
    return lines.length === 0 ? "no differences" : lines.join("\n");
  }

  function fieldText(change) {
    const path = plain(change.path);
    const side = (value) => json(value, VALUE_COLUMNS);
    if (change.type === "added") {
      return `+ ${path}: ${side(change.to)}`;
    }
    if (change.type === "removed") {
      return `- ${path}: ${side(change.from)}`;
    }
    return `~ ${path}: ${side(change.from)} → ${side(change.to)}`;
  }

  /** What lies at a dotted path; undefined if nothing does. */
  function valueAt(document, path) {
    return path.split(".").reduce((value, name) => value?.[name], document);
  }

  /** A conflict, as `frond conflicts` prints it: each path with its three values. */
  function conflictText(conflict) {
    const lines = [`${conflict.id}  ${plain(conflict.collection)} ${json(conflict._id, VALUE_COLUMNS)}`];
    const paths = conflict.paths ?? [];
    if (paths.length === 0) {
      lines[0] += `  ${plain(conflict.kind)}`;
    }
    for (const path of paths.length === 0 ? [null] : paths) {
      const indent = path === null ? "  " : "    ";
      lines.push(...(path === null ? [] : [`  ${plain(path)}`]));
      for (const side of ["base", "ours", "theirs"]) {
        const value = path === null ? conflict[side] : valueAt(conflict[side], path);
        const shown = value === undefined ? "(none)" : json(value, DOCUMENT_COLUMNS);
        lines.push(`${indent}${side.padEnd(7)} ${shown}`);
      }
    }
    return lines.join("\n");
  }

  /** A commit, and below it what it changed in each collection. */
  function commitText(commit) {
    const lines = [`commit ${commit.commitId}`, `Author: ${plain(commit.author)}`];
    lines.push(`Date:   ${commit.timestamp.toISOString()}`, "");
    lines.push(...plain(commit.message).split("\n").map((line) => `    ${line}`), "");
    for (const changed of commit.collections ?? []) {
      lines.push(`${plain(changed.collection)}  ${countsText(changed)}`);
    }
    return lines.join("\n").trimEnd();
  }

  function countsText(changed) {
    const kinds = ["added", "removed", "modified"].filter((kind) => changed[kind] > 0);
    return kinds.map((kind) => `${changed[kind]} ${kind}`).join(", ") || changed.change;
  }

  /** A version of a document, newest first in a list. */
  function versionText(version) {
    const line = version.commitId ? commitLine(version) : "not committed yet";
    const changes = (version.changes ?? []).map((change) => "    " + fieldText(change));
    const whole = version.change === "removed" ? "    - removed" : "    + " + json(version.document, DOCUMENT_COLUMNS);
    return [line, ...(changes.length > 0 ? changes : [whole])].join("\n");
  }

  function blameText(field) {
    const commit = field.commitId ? shortId(field.commitId) : "not yet   ";
    const author = cut(plain(field.author ?? ""), 20).padEnd(20);
    return `${commit}  ${author}  ${plain(field.path)}  ${json(field.value, VALUE_COLUMNS)}`;
  }

  /** What a merge ended with. */
  function merged(database, answer) {
    const branch = plain(answer.branch ?? "");
    const counts = (answer.conflicts ?? []).map((found) => {
      return `${plain(found.collection)}: ${counted(Number(found.count), "conflict")}`;
    });
    const texts = {
      merged: () => `[${branch} ${shortId(answer.commitId)}] ${plain(answer.message ?? "merged")}`,
      fastForward: () => `moved forward: ${branch} is at ${shortId(answer.commitId)}`,
      upToDate: () => "nothing to merge",
      aborted: () => "gave up the merge",
      conflicts: () => counts.join("\n"),
    };
    const text = (texts[answer.result] ?? (() => plain(answer.result)))();
    return shownAs(answer, answer.dryRun ? "would be: " + text : text);
  }

  /** Runs a command that merges; conflicts are an error that says how to go on. */
  function withConflicts(database, command) {
    try {
      return merged(database, database.runCommand(command));
    } catch (error) {
      if (error.errorResponse?.result !== "conflicts") {
        throw error;
      }
      const answer = merged(database, error.errorResponse);
      const text = answer[Symbol.for("nodejs.util.inspect.custom")]();
      const next = "db.conflicts() lists them, db.resolve() decides, db.merge({continue: true}) ends the merge";
      error.message = `the merge has conflicts\n${text}\n${next}`;
      throw error;
    }
  }

  /** Refuses to undo a commit behind which something was written: an undo would leave those writes. */
  function refuseOlder(database) {
    const [newest] = attempted(() => database.runCommand({ frondReflog: 1, limit: 1 }).changes) ?? [];
    const isCommit = newest && newest.undid === undefined && newest.why.startsWith("commit");
    if (!isCommit || !attempted(() => database.runCommand({ frondStatus: 1 }).dirty)) {
      return;
    }
    throw new Error(
      `nothing is undone: there are changes that are not committed (db.diff()), and this would undo the commit ` +
        `before them (${plain(newest.why)}). db.restore("collection") and db.reset("HEAD", {hard: true}) take the ` +
        `changes back; db.undo({change: Long("${newest.change}")}) undoes the commit and keeps them`,
    );
  }

  /** What something gives; nothing if it fails, as of a database that was dropped. */
  function attempted(run) {
    try {
      return run();
    } catch {
      return undefined;
    }
  }

  const methods = {
    commit: {
      usage: 'db.commit("message" [, {author, amend, allowEmpty, time}])',
      about: "record this branch's working state as a version",
      run(message, options) {
        const given = { ...author(this), ...fields(message, "message"), ...options };
        const commit = this.runCommand({ frondCommit: 1, ...given });
        const first = plain(commit.message).split("\n")[0];
        return shownAs(commit, `[${plain(commit.branch)} ${shortId(commit.commitId)}] ${first}`);
      },
    },
    log: {
      usage: 'db.log([10 | "main..sale" | {range, limit, collection, document, author, message, since, until}])',
      about: "list the versions, newest first",
      run(options) {
        const given = typeof options === "number" ? { limit: options } : fields(options, "range");
        const { commits } = this.runCommand({ frondLog: 1, ...given });
        return shownAs(commits, commits.map(commitLine).join("\n") || "no commits");
      },
    },
    status: {
      usage: "db.status()",
      about: "show the branch and what changed since its last commit",
      run() {
        const status = this.runCommand({ frondStatus: 1 });
        const head = status.head ? `at ${shortId(status.head)}` : "no commits yet";
        const lines = [`On branch ${plain(status.branch)}, ${head}`];
        for (const changed of status.collections) {
          const counts = ["added", "removed", "modified"]
            .filter((kind) => changed[kind] > 0)
            .map((kind) => `${changed[kind]} ${kind}`);
          lines.push(`  ${changed.change.padEnd(9)} ${plain(changed.collection)}  ${counts.join(", ")}`);
        }
        if (status.merging) {
          lines.push(`  a merge of ${shortId(status.merging)} waits: see db.conflicts()`);
        }
        lines.push(...(status.dirty || status.merging ? [] : ["nothing to commit"]));
        return shownAs(status, lines.join("\n"));
      },
    },
    branch: {
      usage: 'db.branch("sale" [, "main~2" | {start, protected, closed, expireAfterSeconds, rename, delete, forceDelete}])',
      about: "make a branch, or change, rename or delete one",
      run(name, options) {
        if (typeof name !== "string") {
          throw new Error("db.branch() takes the branch's name; db.branches() lists them");
        }
        const answer = this.runCommand({ frondBranch: 1, branch: name, ...fields(options, "start") });
        if (answer.deleted) {
          return shownAs(answer, `deleted branch ${plain(answer.deleted)}`);
        }
        const database = `${repositoryOf(this)}@${driverName(answer.branch)}`;
        const text = `branch ${plain(answer.branch)} at ${shortId(answer.commitId)}: use ${plain(database)}`;
        return shownAs(answer, text);
      },
    },
    branches: {
      usage: "db.branches()",
      about: "list the branches; * is this one",
      run() {
        const { branches } = this.runCommand({ frondBranch: 1 });
        const { branch: current } = this.runCommand({ frondStatus: 1 });
        const lines = branches.map((branch) => {
          const mark = branch.branch === current ? "*" : " ";
          const marks = ["protected", "closed"].filter((kind) => branch[kind]);
          const name = plain(branch.branch).padEnd(24);
          return `${mark} ${name} ${[shortId(branch.commitId), ...marks].join("  ")}`;
        });
        return shownAs(branches, lines.join("\n"));
      },
    },
    diff: {
      usage: 'db.diff([["main",] "sale" | "main...sale" | {from, to, collection, document}])',
      about: "show what differs; without arguments, what is not committed",
      run(from, to) {
        const sides = typeof from === "object" ? { ...from } : {};
        if (typeof from === "string") {
          // A range says both sides itself.
          const one = from.includes("..") ? { from } : { to: from };
          Object.assign(sides, to === undefined ? one : { from, to });
        }
        const rows = this.aggregate([{ $diff: { whole: true, ...sides } }]).toArray();
        return shownAs(rows, diffText(rows));
      },
    },
    merge: {
      usage: 'db.merge("sale" [, {message, author, noFF, ffOnly, squash, dryRun, onConflict}]), ' +
        "db.merge({continue: true}), db.merge({abort: true})",
      about: "bring another version into this branch",
      run(version, options) {
        const given = { ...fields(version, "merge_in"), ...options };
        return withConflicts(this, { frondMerge: 1, ...(given.abort ? {} : author(this)), ...given });
      },
    },
    conflicts: {
      usage: "db.conflicts([collection])",
      about: "list the conflicts of a merge that waits",
      run(collection) {
        const { conflicts } = this.runCommand({ frondConflicts: 1, ...fields(collection, "collection") });
        return shownAs(conflicts, conflicts.map(conflictText).join("\n") || "no conflicts");
      },
    },
    resolve: {
      usage: 'db.resolve("id" | {id | ids | collection | all}, "ours" | "theirs" | document | null)',
      about: "decide conflicts",
      run(which, decision) {
        const isSide = typeof decision === "string";
        const how = isSide ? { resolution: decision } : { value: decision ?? null };
        if (decision === undefined) {
          throw new Error('db.resolve() takes a decision: "ours", "theirs", a document, or null to remove it');
        }
        const answer = this.runCommand({ frondResolveConflict: 1, ...fields(which, "id"), ...how });
        const left = Number(answer.remaining);
        const text = left > 0 ? `${counted(left, "conflict")} left` : "no conflicts are left: db.merge({continue: true})";
        return shownAs(answer, text);
      },
    },
    undo: {
      usage: "db.undo([{change, branch, dropped}])",
      about: "take back what last moved this branch",
      run(options) {
        if (options === undefined) {
          refuseOlder(this);
        }
        const answer = this.runCommand({ frondUndo: 1, ...options });
        return shownAs(answer, `undone: ${plain(answer.undone?.why ?? "the drop of a database")}`);
      },
    },
    show: {
      usage: 'db.show(["main~2"])',
      about: "show a version, and what it changed in each collection",
      run(version) {
        const commit = this.runCommand({ frondShow: 1, ...fields(version, "target") });
        return shownAs(commit, commitText(commit));
      },
    },
    tag: {
      usage: 'db.tag("v1" [, "main~2" | {target, message, author, force, delete}])',
      about: "name a version, or delete its name",
      run(name, options) {
        const answer = this.runCommand({ frondTag: 1, tag: name, ...fields(options, "target") });
        const text = answer.deleted
          ? `removed tag ${plain(answer.deleted)}, which named ${shortId(answer.commitId)}`
          : `tag ${plain(answer.tag)} names ${shortId(answer.commitId)}`;
        return shownAs(answer, text);
      },
    },
    tags: {
      usage: "db.tags()",
      about: "list the tags",
      run() {
        const { tags } = this.runCommand({ frondTag: 1 });
        const lines = tags.map((tag) => {
          return `${plain(tag.tag).padEnd(24)} ${shortId(tag.commitId)}  ${plain(tag.message ?? "")}`.trimEnd();
        });
        return shownAs(tags, lines.join("\n") || "no tags");
      },
    },
    history: {
      usage: 'db.history("items", 1 [, {limit}])',
      about: "list the versions of a document, newest first",
      run(collection, document, options) {
        const { versions } = this.runCommand({ frondHistory: 1, collection, document, ...options });
        return shownAs(versions, versions.map(versionText).join("\n") || "no versions");
      },
    },
    blame: {
      usage: 'db.blame("items", 1)',
      about: "show which version each field of a document comes from",
      run(collection, document) {
        const answer = this.runCommand({ frondBlame: 1, collection, document });
        return shownAs(answer, answer.fields.map(blameText).join("\n"));
      },
    },
    revert: {
      usage: 'db.revert("main~2" [, {message, author, parent}])',
      about: "take back what one version changed, by a new one",
      run(version, options) {
        return withConflicts(this, { frondRevert: 1, ...author(this), ...fields(version, "target"), ...options });
      },
    },
    cherryPick: {
      usage: 'db.cherryPick("sale~1" [, {message, author, parent}])',
      about: "make the changes of one version here, too",
      run(version, options) {
        return withConflicts(this, { frondCherryPick: 1, ...fields(version, "target"), ...options });
      },
    },
    restore: {
      usage: 'db.restore("items" [, "main@{tuesday}" | {from, document}])',
      about: "make a collection or a document what it was in another version; by default, in the last commit",
      run(collection, options) {
        const answer = this.runCommand({ frondRestore: 1, collection, ...fields(options, "from") });
        const { from } = fields(options, "from");
        const version = from === undefined ? "the last commit" : plain(from);
        const isGone = answer.result === "removed";
        const text = isGone ? `was removed: ${version} doesn't have it` : `is as ${version} has it`;
        return shownAs(answer, `${plain(collection)} ${text}`);
      },
    },
    reset: {
      usage: 'db.reset("main~1" [, {hard: true}])',
      about: "move the branch to another version; with hard what is not committed, too",
      run(version, options) {
        const answer = this.runCommand({ frondReset: 1, ...fields(version, "target"), ...options });
        return shownAs(answer, `${plain(answer.branch)} is at ${shortId(answer.commitId)} now`);
      },
    },
    reflog: {
      usage: "db.reflog([10 | {branch, all, limit}])",
      about: "list what moved this branch, newest first",
      run(options) {
        const given = typeof options === "number" ? { limit: options } : { ...options };
        const { changes } = this.runCommand({ frondReflog: 1, ...given });
        const lines = changes.map((change) => {
          return `${change.change}  ${change.to ? shortId(change.to) : "deleted   "}  ${plain(change.why)}`;
        });
        return shownAs(changes, lines.join("\n") || "nothing moved it");
      },
    },
    frondHelp: {
      usage: 'db.frondHelp(["frondMerge"])',
      about: "list these methods; explain one of Frond's commands",
      run(command) {
        if (command !== undefined) {
          const answer = this.runCommand({ frondHelp: command });
          return shownAs(answer, plain(answer.text));
        }
        const lines = Object.values(methods).map(({ usage, about }) => `${usage}\n    ${about}`);
        const text = lines.join("\n") +
          '\n\nA branch is a database: use shop@sale. db.runCommand({frondHelp: 1}) lists all commands.';
        return shownAs(Object.keys(methods), text);
      },
    },
  };

  /** A method that is also the collection of its name: db.tags() and db.tags.find(). */
  function methodOrCollection(database, name, run) {
    return new Proxy(run.bind(database), {
      get(method, property, receiver) {
        if (typeof property === "symbol" || property in method) {
          return Reflect.get(method, property, receiver);
        }
        const collection = database.getCollection(name);
        const value = collection[property];
        return typeof value === "function" ? value.bind(collection) : value;
      },
    });
  }

  const prototype = Object.getPrototypeOf(db);
  for (const [name, { run }] of Object.entries(methods)) {
    Object.defineProperty(prototype, name, {
      get() {
        return methodOrCollection(this, name, run);
      },
      configurable: true,
    });
  }
})();
