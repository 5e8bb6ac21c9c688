//! Fields that every command takes: session, deadline, read and write concern, API version.
//!
//! Frond is a replica set of one member: what a write concern asks of others is either trivially
//! true (`majority`) or answered as such a member answers it (the write is done, and the answer
//! says that there is no other member). [`crate::concerns`] says which command takes which concern,
//! and what a read concern promises.

mod part;
mod read_preference;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use frond_db::{Durability, Error};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Timestamp, Value};
use frond_query::Code;

pub use self::part::{Part, PartFields};
use crate::fields::Fields;
use crate::stable_api::ApiParameters;
use crate::tables;

/// The SHA-256 of a user's full name, `user@database`; of no bytes for a client that hasn't logged
/// in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserDigest(pub [u8; 32]);

impl UserDigest {
    /// The digest of clients who haven't logged in.
    pub const ANONYMOUS: UserDigest = UserDigest([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9,
        0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52,
        0xb8, 0x55,
    ]);

    /// Returns the digest of a user.
    pub fn of(full_name: &str) -> UserDigest {
        let digest = ring::digest::digest(&ring::digest::SHA256, full_name.as_bytes());
        UserDigest(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

/// Names a session: the sixteen bytes of the UUID that the client made, and whose client it was. So
/// no client reaches another user's session, whatever its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionId {
    /// The id that the client made.
    pub id: [u8; 16],
    /// The user whose session it is.
    pub user: UserDigest,
}

impl SessionId {
    /// A session of a client that hasn't logged in.
    pub const fn anonymous(id: [u8; 16]) -> SessionId {
        SessionId { id, user: UserDigest::ANONYMOUS }
    }

    /// The sixteen bytes under which the outcomes of its writes are stored: those of the id alone
    /// for a client that hasn't logged in.
    pub fn stored(&self) -> [u8; 16] {
        if self.user == UserDigest::ANONYMOUS {
            return self.id;
        }
        let mut both = [0; 48];
        both[..16].copy_from_slice(&self.id);
        both[16..].copy_from_slice(&self.user.0);
        let digest = ring::digest::digest(&ring::digest::SHA256, &both);
        digest.as_ref()[..16].try_into().expect("SHA-256 has 32 bytes")
    }
}

/// Hashes the id alone: two users hardly ever have the same.
impl Hash for SessionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The fields that are read here, the ones that most commands have first.
const NAMES: &[&[u8]] = &[
    b"lsid",
    b"txnNumber",
    b"autocommit",
    b"startTransaction",
    b"$readPreference",
    b"readConcern",
    b"writeConcern",
    b"maxTimeMS",
    b"apiVersion",
    b"apiStrict",
    b"apiDeprecationErrors",
];

/// The binary subtype of a UUID.
pub const UUID_SUBTYPE: u8 = 4;

/// The fields of a command that all commands may have.
#[derive(Clone, Debug)]
pub struct Common {
    /// The session that it belongs to.
    pub session: Option<SessionId>,
    /// The time that it may run.
    pub time_max: Option<Duration>,
    /// The durability: when its writes are acknowledged.
    pub durability: Durability,
    /// Whether the client waits for an answer to its writes: false for `w: 0`.
    pub acknowledged: bool,
    /// The fields of the stable API.
    pub api: ApiParameters,
    /// The transaction or retryable write that it is.
    pub part: Option<Part>,
    /// Whether it has a write concern.
    pub has_write_concern: bool,
    /// Whether that says how many members must have a write.
    pub has_w: bool,
    /// The value of `j` in the write concern.
    pub journal: Option<bool>,
    /// An error about a part of the write concern that can't be had: reported in the answer, though
    /// the write is done.
    pub concern_failure: Option<Error>,
    /// Whether it has a read concern.
    pub has_read_concern: bool,
    /// The level of the read concern.
    pub level: Level,
    /// The moment that it must not read before.
    pub after_time: Option<Timestamp>,
    /// The moment at which it is to read.
    pub at_time: Option<Timestamp>,
}

/// The level of a read concern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum Level {
    #[default]
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
}

impl Level {
    const ALL: [Level; 5] =
        [Level::Local, Level::Available, Level::Majority, Level::Linearizable, Level::Snapshot];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Level::Local => "local",
            Level::Available => "available",
            Level::Majority => "majority",
            Level::Linearizable => "linearizable",
            Level::Snapshot => "snapshot",
        }
    }

    /// Whether a transaction may have it.
    pub fn is_of_transactions(self) -> bool {
        matches!(self, Level::Local | Level::Majority | Level::Snapshot)
    }
}

/// The values of a command that has none of these fields.
impl Default for Common {
    fn default() -> Common {
        Common {
            session: None,
            time_max: None,
            durability: Durability::Synced,
            acknowledged: true,
            api: ApiParameters::default(),
            part: None,
            has_write_concern: false,
            has_w: false,
            journal: None,
            concern_failure: None,
            has_read_concern: false,
            level: Level::Local,
            after_time: None,
            at_time: None,
        }
    }
}

impl Common {
    /// Reads the common fields of a command, which [`crate::tables::check`] has let through.
    ///
    /// # Errors
    /// `InvalidOptions` for fields that don't go together; what a write concern or an API can't be.
    pub fn read(command: Document<'_>) -> Result<Common, Error> {
        let mut common = Common::default();
        let mut part = PartFields::default();
        for element in command.elements().filter(|element| NAMES.contains(&element.name)) {
            let (Some(name), Some(value)) = (element.name(), element.decode()) else { continue };
            if matches!(value, Value::Null | Value::Undefined) {
                continue;
            }
            match name {
                "lsid" => common.session = Some(read_session(value)?),
                "maxTimeMS" => common.time_max = read_time_max(value),
                "$readPreference" => {
                    read_preference::check(value.as_document().unwrap_or(Document::empty()))?;
                }
                "writeConcern" => common.read_write_concern(value)?,
                "readConcern" => common.read_read_concern(value)?,
                "apiVersion" | "apiStrict" | "apiDeprecationErrors" => {
                    common.api.take(name, value)?;
                }
                "txnNumber" => part.number = tables::integer(value),
                "autocommit" => part.autocommit = Some(value.is_truthy()),
                "startTransaction" => part.starts = Some(value.is_truthy()),
                _ => {}
            }
        }
        common.part = part.read(common.session)?;
        Ok(common)
    }

    /// Reads a concern by itself: `name` is `readConcern` or `writeConcern`.
    ///
    /// # Errors
    /// As [`Common::read`].
    pub fn of_concerns(name: &str, concern: Document<'_>) -> Result<Common, Error> {
        let mut command = DocumentBuilder::new();
        command.append(name, Value::Document(concern));
        Common::read(command.build().view())
    }

    /// Makes its session one of `user`.
    ///
    /// # Errors
    /// `Unauthorized` if it says that it is another's.
    pub fn own(&mut self, user: UserDigest) -> Result<(), Error> {
        let Some(session) = &mut self.session else { return Ok(()) };
        if session.user != UserDigest::ANONYMOUS && session.user != user {
            let message = "Unauthorized to set user digest in LogicalSessionId";
            return Err(Error::invalid(Code::Unauthorized, message));
        }
        session.user = user;
        if let Some(part) = &mut self.part {
            part.set_user(user);
        }
        Ok(())
    }

    fn read_write_concern(&mut self, value: Value<'_>) -> Result<(), Error> {
        let concern = value.as_document().unwrap_or(Document::empty());
        self.has_write_concern = !concern.is_empty();
        let mut fields = Fields::of_part("writeConcern", concern)?;
        let members = fields.value("w");
        self.has_w = members.is_some();
        match members {
            None | Some(Value::String("majority")) => {}
            Some(Value::String(mode)) => {
                let message = format!(
                    "No write concern mode named '{mode}' found in replica set configuration"
                );
                let failure = Error::invalid(Code::UnknownReplWriteConcern, message);
                self.concern_failure = Some(failure);
            }
            Some(value) => match value.as_integer() {
                Some(0) => self.acknowledged = false,
                Some(1) => {}
                Some(2..=50) => {
                    let message = "Not enough data-bearing nodes";
                    let failure = Error::invalid(Code::UnsatisfiableWriteConcern, message);
                    self.concern_failure = Some(failure);
                }
                _ => {
                    let message = "w has to be a non-negative number and not greater than 50, or \
                                   a string";
                    return Err(Error::invalid(Code::FailedToParse, message));
                }
            },
        }
        let journal = fields.optional_boolean("j")?;
        let sync = fields.optional_boolean("fsync")?;
        self.journal = if sync == Some(true) { sync } else { journal };
        if self.journal == Some(false) {
            self.durability = Durability::Relaxed;
        }
        let timeout = fields.integer("wtimeout")?.unwrap_or(0);
        let provenance = fields.string("provenance")?.unwrap_or("clientSupplied");
        if let (Some(failure), Some(members)) = (&mut self.concern_failure, members) {
            let info = write_concern_info(members, self.journal, timeout, provenance);
            failure.details = Some(info);
        }
        fields.finish()
    }

    fn read_read_concern(&mut self, value: Value<'_>) -> Result<(), Error> {
        let concern = value.as_document().unwrap_or(Document::empty());
        self.has_read_concern = !concern.is_empty();
        let mut fields = Fields::of_part("readConcern", concern)?;
        let level = fields.string("level")?.unwrap_or("local");
        let known = Level::ALL.into_iter().find(|known| known.name() == level);
        self.level = known.ok_or_else(|| Error::internal(format!("read concern '{level}'")))?;
        self.after_time = read_moment(&mut fields, "afterClusterTime")?;
        self.at_time = read_moment(&mut fields, "atClusterTime")?;
        let refuse = |message: &str| Err(Error::invalid(Code::InvalidOptions, message));
        if self.after_time.is_some() && !self.level.is_of_transactions() {
            return refuse(
                "afterClusterTime field can be set only if level is equal to local, majority, or \
                 snapshot",
            );
        }
        if self.at_time.is_some() && self.level != Level::Snapshot {
            return refuse("atClusterTime field can be set only if level is equal to snapshot");
        }
        if self.at_time.is_some() && self.after_time.is_some() {
            return refuse("Can not specify both atClusterTime and afterClusterTime");
        }
        if fields.value("afterOpTime").is_some() {
            return refuse("readConcern 'afterOpTime' is for members of a replica set");
        }
        fields.ignore(&["provenance"]);
        fields.finish()
    }
}

/// Returns what an error of a write concern tells besides: the concern, and who has said it.
fn write_concern_info(
    members: Value<'_>,
    journal: Option<bool>,
    timeout: i64,
    provenance: &str,
) -> DocumentBuf {
    let mut info = DocumentBuilder::new();
    info.begin_document("errInfo").begin_document("writeConcern").append("w", members);
    if let Some(journal) = journal {
        info.append("j", Value::Boolean(journal));
    }
    let timeout = i32::try_from(timeout).unwrap_or(i32::MAX);
    info.append("wtimeout", Value::Int32(timeout)).append("provenance", Value::String(provenance));
    info.end().end();
    info.build()
}

fn read_moment(fields: &mut Fields<'_>, name: &str) -> Result<Option<Timestamp>, Error> {
    match fields.value(name) {
        None => Ok(None),
        Some(Value::Timestamp(Timestamp(0))) => {
            let message = format!("{name} can't be a null timestamp");
            Err(Error::invalid(Code::InvalidOptions, message))
        }
        Some(Value::Timestamp(time)) => Ok(Some(time)),
        Some(other) => Err(fields.wrong_type(name, other, "type 'timestamp'")),
    }
}

/// Reads an `lsid`: `{id: UUID}`.
///
/// # Errors
/// `TypeMismatch` (14), or a field missing or unknown.
pub fn read_session(value: Value<'_>) -> Result<SessionId, Error> {
    let document = value.as_document().unwrap_or(Document::empty());
    tables::check_part("OperationSessionInfo.lsid", tables::LSID, document)?;
    let bytes = |name| match document.get(name) {
        Some(Value::Binary(binary)) => Some(binary.bytes),
        _ => None,
    };
    let id = bytes("id").and_then(|bytes| bytes.try_into().ok());
    let id = id.ok_or_else(|| Error::internal("an lsid without sixteen bytes"))?;
    let user = bytes("uid").and_then(|bytes| bytes.try_into().ok());
    Ok(SessionId { id, user: user.map_or(UserDigest::ANONYMOUS, UserDigest) })
}

/// Returns how long a command may run; no limit for 0.
fn read_time_max(value: Value<'_>) -> Option<Duration> {
    let millis = tables::integer(value).and_then(|millis| u64::try_from(millis).ok());
    millis.filter(|millis| *millis > 0).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use frond_doc::{Binary, document};

    use super::*;

    fn read(name: &str, value: Value<'_>) -> Result<Common, i32> {
        let mut builder = frond_doc::DocumentBuilder::new();
        builder.append("ping", Value::Int32(1)).append(name, value);
        let document = builder.build();
        let ping = tables::find("ping").expect("a table");
        tables::check(ping, document.view(), &[])
            .and_then(|()| Common::read(document.view()))
            .map_err(|error| error.code.number())
    }

    fn write_concern(concern: DocumentBuf) -> Result<(bool, bool), i32> {
        let common = read("writeConcern", Value::Document(concern.view()))?;
        Ok((common.acknowledged, common.durability == Durability::Synced))
    }

    #[test]
    fn write_concerns() {
        for (concern, expected) in [
            (document! {}, Ok((true, true))),
            (document! { "w": 1_i32 }, Ok((true, true))),
            (document! { "w": "majority", "wtimeout": 5_i32 }, Ok((true, true))),
            (document! { "w": 0_i32 }, Ok((false, true))),
            (document! { "j": false }, Ok((true, false))),
            (document! { "w": 1.0, "j": true }, Ok((true, true))),
            (document! { "w": 2_i32 }, Ok((true, true))),
            (document! { "w": "elsewhere" }, Ok((true, true))),
            (document! { "w": -1_i32 }, Err(9)),
            (document! { "w": true }, Err(9)),
            (document! { "wtimeout": 1_i64 << 31 }, Err(9)),
            (document! { "wtimeout": "x" }, Err(14)),
            (document! { "j": "yes" }, Err(14)),
            (document! { "x": 1_i32 }, Err(40415)),
        ] {
            assert_eq!(write_concern(concern.clone()), expected, "{concern:?}");
        }
    }

    #[test]
    fn write_concerns_that_one_member_cannot_satisfy() {
        let info = |concern: DocumentBuf| {
            document! { "errInfo": &document! { "writeConcern": &concern } }
        };
        for (concern, code, expected) in [
            (
                document! { "w": 2_i32 },
                100,
                document! { "w": 2_i32, "wtimeout": 0_i32, "provenance": "clientSupplied" },
            ),
            (
                document! { "w": "there", "wtimeout": 5_i64, "j": true, "provenance": "customDefault" },
                79,
                document! { "w": "there", "j": true, "wtimeout": 5_i32, "provenance": "customDefault" },
            ),
        ] {
            let common = read("writeConcern", Value::Document(concern.view())).expect("read");
            let failure = common.concern_failure.expect("it can't be had");
            assert_eq!((failure.code.number(), failure.details), (code, Some(info(expected))));
        }
    }

    #[test]
    fn read_concerns_and_times() {
        let concern = |level: &str| {
            let concern = document! { "level": level };
            read("readConcern", Value::Document(concern.view())).map(|_| ())
        };
        assert_eq!(concern("majority"), Ok(()));
        assert_eq!(concern("snapshot"), Ok(()));
        assert_eq!(concern("other"), Err(2));
        let time = |value| read("maxTimeMS", value).map(|common| common.time_max);
        assert_eq!(time(Value::Int32(0)), Ok(None));
        assert_eq!(time(Value::Int64(20)), Ok(Some(Duration::from_millis(20))));
        assert_eq!(time(Value::Double(0.5)), Err(9));
        assert_eq!(time(Value::Int32(-1)), Err(2));
        assert_eq!(time(Value::String("1")), Err(14));
    }

    #[test]
    fn sessions_and_transactions() {
        let id = |subtype, bytes: &'static [u8]| {
            let document = document! { "id": Value::Binary(Binary { subtype, bytes }) };
            read("lsid", Value::Document(document.view())).map(|common| common.session)
        };
        assert_eq!(id(4, &[7; 16]), Ok(Some(SessionId::anonymous([7; 16]))));
        assert_eq!(id(4, &[7; 15]), Err(14));
        assert_eq!(id(0, &[7; 16]), Err(14));
        assert_eq!(read("lsid", Value::Int32(1)).map(|_| ()), Err(14));
        assert_eq!(read("txnNumber", Value::Int64(1)).map(|_| ()), Err(72));
        assert_eq!(read("txnNumber", Value::String("1")).map(|_| ()), Err(14));
        assert_eq!(read("startTransaction", Value::Boolean(true)).map(|_| ()), Err(72));
        assert_eq!(read("autocommit", Value::Int32(0)).map(|_| ()), Err(14));
        assert_eq!(read("apiVersion", Value::String("3")).map(|_| ()), Err(322));
        assert_eq!(read("apiVersion", Value::String("1")).map(|_| ()), Ok(()));
        assert_eq!(read("apiVersion", Value::Int32(1)).map(|_| ()), Err(14));
    }
}
