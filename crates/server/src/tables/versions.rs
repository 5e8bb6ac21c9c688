//! Frond's own commands, those of versions.

use frond_doc::ElementType;

use super::field::Field;
use super::kind::{ARRAY, BYTES, DATE, FLAG, Kind, NUMERIC, OBJECT, TEXT};
use super::table::Table;

const fn text(name: &'static str) -> Field {
    Field::new(name, TEXT).own()
}

const fn flag(name: &'static str) -> Field {
    Field::new(name, FLAG).own()
}

const fn count(name: &'static str) -> Field {
    Field::new(name, NUMERIC).at_least(0).own()
}

const fn any(name: &'static str) -> Field {
    Field::new(name, Kind::Any).own()
}

const fn date(name: &'static str) -> Field {
    Field::new(name, DATE).own()
}

const fn texts(name: &'static str) -> Field {
    Field::new(name, Kind::EachOf(ElementType::String)).own()
}

const fn of(command: &'static str, fields: &'static [Field]) -> Table {
    Table::of(command, fields).writing()
}

const EQUAL_CHANGES: Field = text("equalChanges");
const GRANULARITY: Field = text("granularity");
const MERGE_RULES_OF: Field = Field::new("mergeRules", OBJECT).own();
const ON_CONFLICT: Field = text("onConflict");

pub static BLAME: Table =
    of("frondBlame", &[text("collection").required(), any("document").required()]);

pub static BRANCH: Table = of(
    "frondBranch",
    &[
        text("branch"),
        flag("closed"),
        any("delete"),
        flag("details"),
        // Later dates are beyond what drivers read.
        count("expireAfterSeconds").at_most(u32::MAX as i64),
        flag("forceDelete"),
        flag("protected"),
        flag("removeExpired"),
        text("rename"),
        text("start"),
    ],
);

static PICK: &[Field] = &[
    text("target").required(),
    text("author"),
    EQUAL_CHANGES,
    GRANULARITY,
    MERGE_RULES_OF,
    text("message"),
    ON_CONFLICT,
    count("parent"),
    flag("refuseDirty"),
];

pub static CHERRY_PICK: Table = of("frondCherryPick", PICK);
pub static CLOCK: Table = of("frondClock", &[flag("accept")]);

pub static CLONE: Table =
    of("frondClone", &[text("from").required(), count("depth"), text("token"), flag("unshallow")]);

pub static COMMIT: Table = of(
    "frondCommit",
    &[
        flag("allowEmpty"),
        flag("amend"),
        text("author"),
        text("committer"),
        texts("merges"),
        text("message"),
        date("time"),
    ],
);

pub static CONFLICTS: Table = of("frondConflicts", &[text("collection")]);
pub static DIFF: Table = of("frondDiff", &[text("from"), text("to")]);

pub static ERASE: Table = of(
    "frondErase",
    &[
        text("collection"),
        flag("commits"),
        flag("confirm"),
        any("document"),
        Field::new("documents", ARRAY).own(),
        flag("dryRun"),
        texts("fields"),
    ],
);

pub static FETCH: Table =
    of("frondFetch", &[count("depth"), text("remote"), text("token"), flag("unshallow")]);

pub static GC: Table =
    of("frondGc", &[count("bytesPerSecond"), flag("purge"), flag("quick"), count("undoSeconds")]);

pub static HAND_OVER: Table = of(
    "frondHandOver",
    &[
        Field::new("after", BYTES).own(),
        text("from"),
        count("generation"),
        Field::new("handover", OBJECT).own(),
        Field::new("hashes", BYTES).own(),
        text("line"),
        Field::new("records", ARRAY).own(),
        text("step").required(),
        flag("tls"),
    ],
);

/// The fields of the log and of a document's history, and at the end those of the log only.
static LOG_AND_TEXT: [Field; 12] = [
    text("after"),
    text("author"),
    text("collection"),
    any("document"),
    flag("firstParent"),
    count("limit"),
    text("message"),
    text("range"),
    date("since"),
    count("skip"),
    date("until"),
    text("text"),
];
static LOG_FIELDS: &[Field] = LOG_AND_TEXT.split_last().expect("it has twelve").1;

/// It only reads a page.
pub static HELP: Table = Table::of("frondHelp", &[]);

pub static HISTORY: Table = of("frondHistory", LOG_FIELDS);
pub static LOG: Table = of("frondLog", &LOG_AND_TEXT);

pub static MERGE: Table = of(
    "frondMerge",
    &[
        flag("abort"),
        text("author"),
        flag("continue"),
        flag("dryRun"),
        EQUAL_CHANGES,
        flag("ffOnly"),
        GRANULARITY,
        MERGE_RULES_OF,
        text("merge_in"),
        text("message"),
        flag("noFF"),
        ON_CONFLICT,
        flag("refuseDirty"),
        flag("squash"),
    ],
);

pub static MERGE_RULES: Table =
    of("frondMergeRules", &[text("collection").required(), Field::new("rules", OBJECT).own()]);

pub static POLICY: Table =
    of("frondPolicy", &[flag("remove"), Field::new("set", OBJECT).own(), flag("thin")]);

pub static PULL: Table = of(
    "frondPull",
    &[
        text("author"),
        text("branch"),
        EQUAL_CHANGES,
        flag("ffOnly"),
        GRANULARITY,
        MERGE_RULES_OF,
        text("message"),
        flag("noFF"),
        ON_CONFLICT,
        text("remote"),
        text("token"),
    ],
);

pub static PUSH: Table = of(
    "frondPush",
    &[text("branch"), flag("forceWithLease"), text("remote"), flag("tags"), text("token")],
);

pub static REBASE: Table = of(
    "frondRebase",
    &[
        flag("abort"),
        flag("continue"),
        EQUAL_CHANGES,
        GRANULARITY,
        MERGE_RULES_OF,
        ON_CONFLICT,
        text("onto"),
        flag("skip"),
    ],
);

pub static REFLOG: Table = of(
    "frondReflog",
    &[flag("all"), text("branch"), flag("dropped"), date("expireBefore"), count("limit")],
);

pub static REMOTE: Table = of("frondRemote", &[text("name"), flag("remove"), text("url")]);
pub static RESET: Table = of("frondReset", &[flag("hard"), text("mode"), text("target")]);

pub static RESOLVE_CONFLICT: Table = of(
    "frondResolveConflict",
    &[
        flag("all"),
        text("collection"),
        text("id"),
        texts("ids"),
        text("resolution"),
        any("update"),
        any("value"),
    ],
);

pub static RESTORE: Table = of(
    "frondRestore",
    &[
        text("collection").required(),
        any("document"),
        Field::new("documents", ARRAY).own(),
        text("from"),
    ],
);

pub static REVERT: Table = of("frondRevert", PICK);
pub static SHOW: Table = of("frondShow", &[text("target")]);
pub static STATUS: Table = of("frondStatus", &[count("documents")]);

pub static TAG: Table = of(
    "frondTag",
    &[text("author"), flag("delete"), flag("force"), text("message"), text("tag"), text("target")],
);

pub static UNDO: Table = of("frondUndo", &[text("branch"), count("change"), text("dropped")]);
