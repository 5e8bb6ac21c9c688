//! One table a command: its fields, with what each takes and how it stands beside MongoDB's.
//!
//! From these tables come
//! - the checks at the server's door ([`check`]): a command of a wrong field, type or range is
//!   refused before anything else is done with it;
//! - what a command takes besides: read concerns, a write concern, the stable API;
//! - the tables of fields of COMPATIBILITY.md;
//! - tests that send every field of every command each type of BSON, and what lies at the bounds.
//!
//! What MongoDB does is in its manual, in the definitions of its commands (IDL), and in what other
//! projects have measured and published. A command of MongoDB that was defined by hand ignores what
//! it doesn't know ([`Others::Ignored`]); the others refuse it (40415).

mod catalog;
mod check;
mod cursors;
mod every;
mod kind;
mod printed;
mod reads;
mod servers;
mod sessions;
mod users;
mod versions;
mod writes;

use frond_query::Code;
use frond_query::reference::{Feature, Standing};

pub use self::check::{
    Checked, check, check_part, integer, missing_field, out_of_range, unknown, wrong_type,
};
pub use self::every::{EVERY, LSID};
pub use self::kind::{Kind, Worded};
pub use self::printed::{FIELDS, family, page};
pub use self::writes::{BULK_NAMESPACE, BULK_OPERATIONS, DELETES, UPDATES};

/// A command's fields, and what it takes besides.
#[derive(Clone, Copy)]
pub struct Table {
    /// The command's name.
    pub command: &'static str,
    /// What messages put before a field's name: mostly the command's name.
    pub path: &'static str,
    /// What the command's own field takes, the first: mostly a collection's name or 1, which its
    /// reader checks in words of its own.
    pub own: Kind,
    /// The fields, in the order in which MongoDB looks for what is missing.
    pub fields: &'static [Field],
    /// What becomes of fields that nobody knows.
    pub others: Others,
    /// The read concerns that it takes.
    pub reads: Reads,
    /// When it takes a write concern.
    pub writes: Writes,
    /// Whether it belongs to version 1 of MongoDB's stable API.
    pub is_stable: bool,
}

/// What becomes of fields that a command doesn't know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// They are refused (40415).
    Refused,
    /// They are passed over, as by MongoDB.
    Ignored,
    /// The command's reader says: its fields are names of parameters or sections, or a filter.
    Read,
}

/// The read concerns that a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// `local` alone.
    Local,
    /// Every level but `snapshot`.
    Latest,
    /// Every level.
    Moments,
}

/// When a command takes a write concern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// Never: it reads.
    Never,
    /// Where its pipeline writes.
    WithOutput,
    /// Always.
    Always,
}

/// A field of a command, or of a document inside one.
#[derive(Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What is said of other types, where MongoDB says it in words of its own.
    pub worded: Option<&'static Worded>,
    /// The smallest number that it takes.
    pub min: Option<i64>,
    /// The largest number that it takes.
    pub max: Option<i64>,
    /// What is said of numbers out of this range, where it isn't the usual sentence.
    pub range_words: Option<(Code, &'static str)>,
    /// Whether it must be there.
    pub is_required: bool,
    /// Whether the stable API has it.
    pub is_stable: bool,
    /// How it stands beside MongoDB's; `None` where MongoDB documents no such field.
    pub standing: Option<Standing>,
    /// What messages put before the names inside it, where that isn't its own path.
    pub path: Option<&'static str>,
}

impl Table {
    /// A command that refuses what it doesn't know, reads what is there, and writes nothing.
    pub const fn of(command: &'static str, fields: &'static [Field]) -> Table {
        Table {
            command,
            path: command,
            own: Kind::Any,
            fields,
            others: Others::Refused,
            reads: Reads::Local,
            writes: Writes::Never,
            is_stable: false,
        }
    }

    /// Its own field takes this.
    pub const fn taking(self, own: Kind) -> Table {
        Table { own, ..self }
    }

    /// Messages name its fields so.
    pub const fn called(self, path: &'static str) -> Table {
        Table { path, ..self }
    }

    /// It passes over what it doesn't know.
    pub const fn lenient(self) -> Table {
        Table { others: Others::Ignored, ..self }
    }

    /// It takes these read concerns.
    pub const fn reading(self, reads: Reads) -> Table {
        Table { reads, ..self }
    }

    /// It takes a write concern.
    pub const fn writing(self) -> Table {
        Table { writes: Writes::Always, ..self }
    }

    /// It takes a write concern if its pipeline writes.
    pub const fn writing_output(self) -> Table {
        Table { writes: Writes::WithOutput, ..self }
    }

    /// It belongs to the stable API.
    pub const fn stable(self) -> Table {
        Table { is_stable: true, ..self }
    }

    /// Its reader knows which other fields there are.
    pub const fn open(self) -> Table {
        Table { others: Others::Read, ..self }
    }

    /// Its field of this name: its own, or one of every command.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        let own = self.fields.iter().find(|field| field.name == name);
        own.or_else(|| every::find(name))
    }

    /// Whether its reader may ask for this field.
    pub fn has(&self, name: &str) -> bool {
        self.others != Others::Refused || name == self.command || self.field(name).is_some()
    }

    /// Whether a field that its reader hasn't asked for is somebody else's, or nobody's.
    pub fn passes_over(&self, name: &str) -> bool {
        let is_own = self.fields.iter().any(|field| field.name == name);
        !is_own && (self.others == Others::Ignored || every::find(name).is_some())
    }
}

impl Field {
    /// A field that works as MongoDB documents it.
    pub const fn new(name: &'static str, kind: Kind) -> Field {
        Field {
            name,
            kind,
            worded: None,
            min: None,
            max: None,
            range_words: None,
            is_required: false,
            is_stable: true,
            standing: Some(Standing::Works),
            path: None,
        }
    }

    /// It must be there.
    pub const fn required(self) -> Field {
        Field { is_required: true, ..self }
    }

    /// It takes no number below `min`.
    pub const fn at_least(self, min: i64) -> Field {
        Field { min: Some(min), ..self }
    }

    /// It takes no number above `max`.
    pub const fn at_most(self, max: i64) -> Field {
        Field { max: Some(max), ..self }
    }

    /// Numbers out of its range are refused in these words.
    pub const fn range_worded(self, code: Code, message: &'static str) -> Field {
        Field { range_words: Some((code, message)), ..self }
    }

    /// What is of another type is refused in these words.
    pub const fn worded(self, worded: &'static Worded) -> Field {
        Field { worded: Some(worded), ..self }
    }

    /// The stable API doesn't have it.
    pub const fn unstable(self) -> Field {
        Field { is_stable: false, ..self }
    }

    /// MongoDB has it and Frond refuses it with 115, unless it says no.
    pub const fn refused(self) -> Field {
        Field { standing: Some(Standing::Refused("115")), ..self }
    }

    /// It is refused with 115, by a MongoDB without Enterprise too.
    pub const fn elsewhere(self) -> Field {
        Field { standing: Some(Standing::Elsewhere("115")), ..self }
    }

    /// It is taken and has no effect.
    pub const fn idle(self) -> Field {
        Field { standing: Some(Standing::Differs("no effect")), ..self }
    }

    /// It works otherwise than MongoDB's.
    pub const fn differs(self, how: &'static str) -> Field {
        Field { standing: Some(Standing::Differs(how)), ..self }
    }

    /// It is Frond's own.
    pub const fn own(self) -> Field {
        Field { standing: Some(Standing::Own), is_stable: false, ..self }
    }

    /// MongoDB takes it and documents it nowhere: it comes from drivers and other servers.
    pub const fn internal(self) -> Field {
        Field { standing: None, is_stable: false, ..self }
    }

    /// Messages name what is inside it so.
    pub const fn called(self, path: &'static str) -> Field {
        Field { path: Some(path), ..self }
    }

    /// Its line in the lists of features, if MongoDB documents it or it is Frond's own.
    pub fn feature(&self) -> Option<Feature> {
        self.standing.map(|standing| Feature::new(self.name, standing))
    }
}

/// Every table, sorted by command.
pub static TABLES: &[&Table] = &[
    &sessions::ABORT_TRANSACTION,
    &reads::AGGREGATE,
    &servers::BUILD_INFO,
    &writes::BULK_WRITE,
    &catalog::CLONE_COLLECTION_AS_CAPPED,
    &catalog::COLL_MOD,
    &servers::COLL_STATS,
    &sessions::COMMIT_TRANSACTION,
    &servers::COMPACT,
    &servers::CONFIGURE_FAIL_POINT,
    &servers::CONN_POOL_STATS,
    &sessions::CONNECTION_STATUS,
    &catalog::CONVERT_TO_CAPPED,
    &reads::COUNT,
    &catalog::CREATE,
    &catalog::CREATE_INDEXES,
    &users::CREATE_ROLE,
    &users::CREATE_USER,
    &servers::CURRENT_OP,
    &servers::DATA_SIZE,
    &servers::DB_STATS,
    &writes::DELETE,
    &reads::DISTINCT,
    &catalog::DROP,
    &users::DROP_ALL_ROLES,
    &users::DROP_ALL_USERS,
    &catalog::DROP_DATABASE,
    &catalog::DROP_INDEXES,
    &users::DROP_ROLE,
    &users::DROP_USER,
    &sessions::END_SESSIONS,
    &reads::EXPLAIN,
    &reads::FIND,
    &writes::FIND_AND_MODIFY,
    &versions::BLAME,
    &versions::BRANCH,
    &versions::CHERRY_PICK,
    &versions::CLOCK,
    &versions::CLONE,
    &versions::COMMIT,
    &versions::CONFLICTS,
    &versions::DIFF,
    &versions::ERASE,
    &versions::FETCH,
    &versions::GC,
    &versions::HISTORY,
    &versions::LOG,
    &versions::MERGE,
    &versions::MERGE_RULES,
    &versions::POLICY,
    &versions::PULL,
    &versions::PUSH,
    &versions::REBASE,
    &versions::REFLOG,
    &versions::REMOTE,
    &versions::RESET,
    &versions::RESOLVE_CONFLICT,
    &versions::RESTORE,
    &versions::REVERT,
    &versions::SHOW,
    &versions::STATUS,
    &versions::TAG,
    &versions::UNDO,
    &servers::FSYNC,
    &servers::FSYNC_UNLOCK,
    &servers::GET_CMD_LINE_OPTS,
    &servers::GET_DEFAULT_RW_CONCERN,
    &servers::GET_LOG,
    &cursors::GET_MORE,
    &servers::GET_PARAMETER,
    &users::GRANT_PRIVILEGES_TO_ROLE,
    &users::GRANT_ROLES_TO_ROLE,
    &users::GRANT_ROLES_TO_USER,
    &sessions::HELLO,
    &servers::HOST_INFO,
    &writes::INSERT,
    &users::INVALIDATE_USER_CACHE,
    &sessions::IS_MASTER,
    &sessions::KILL_ALL_SESSIONS,
    &cursors::KILL_CURSORS,
    &servers::KILL_OP,
    &sessions::KILL_SESSIONS,
    &catalog::LIST_COLLECTIONS,
    &servers::LIST_COMMANDS,
    &catalog::LIST_DATABASES,
    &catalog::LIST_INDEXES,
    &servers::LOG_ROTATE,
    &sessions::LOGOUT,
    &servers::PING,
    &servers::PLAN_CACHE_CLEAR,
    &servers::PLAN_CACHE_CLEAR_FILTERS,
    &servers::PLAN_CACHE_LIST_FILTERS,
    &servers::PROFILE,
    &servers::RE_INDEX,
    &sessions::REFRESH_SESSIONS,
    &catalog::RENAME_COLLECTION,
    &servers::REPL_SET_GET_CONFIG,
    &servers::REPL_SET_GET_STATUS,
    &servers::REPL_SET_INITIATE,
    &users::REVOKE_PRIVILEGES_FROM_ROLE,
    &users::REVOKE_ROLES_FROM_ROLE,
    &users::REVOKE_ROLES_FROM_USER,
    &users::ROLES_INFO,
    &servers::ROTATE_CERTIFICATES,
    &sessions::SASL_CONTINUE,
    &sessions::SASL_START,
    &servers::SERVER_STATUS,
    &servers::SET_PARAMETER,
    &servers::SHUTDOWN,
    &sessions::START_SESSION,
    &servers::TOP,
    &writes::UPDATE,
    &users::UPDATE_ROLE,
    &users::UPDATE_USER,
    &users::USERS_INFO,
    &servers::VALIDATE,
    &sessions::WHATSMYURI,
];

/// Of a command that is refused whatever it says: what every command takes is checked.
pub static UNSUPPORTED: Table = Table::of("", &[]).lenient();

/// The table of a command.
pub fn find(command: &str) -> Option<&'static Table> {
    let position = TABLES.binary_search_by(|table| table.command.cmp(command)).ok()?;
    TABLES.get(position).copied()
}

#[cfg(test)]
mod tests;
