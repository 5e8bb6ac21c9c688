//! The options of a change stream.

use frond_doc::{DocumentBuf, Timestamp, ValueBuf};
use frond_query::collation::Collation;

use crate::database::Database;
use crate::frond::Frond;

/// The collections that a stream watches.
#[derive(Clone)]
pub enum Watched {
    /// A collection of a branch.
    Collection(Database, String),
    /// All collections of a branch.
    Database(Database),
    /// The default branches of all databases.
    Deployment(Frond),
}

/// The beginning of a stream.
#[derive(Clone, Debug, Default)]
pub enum StreamStart {
    /// With what comes after now.
    #[default]
    Now,
    /// With what happened at this time or after it.
    At(Timestamp),
    /// Behind the event of a token; not behind an invalidation.
    Resume(DocumentBuf),
    /// Behind the event of a token.
    After(DocumentBuf),
    /// With what differs now from a commit of the branch's history, which a revision names, and
    /// then with what comes after.
    AfterCommit(String),
}

/// Says whether an event has the document as it was at a certain time, which is kept only where its
/// collection says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Image {
    /// It hasn't.
    #[default]
    Off,
    /// It has, or `null`.
    WhenAvailable,
    /// It has, or the stream ends.
    Required,
}

/// The document that an update has besides the description of the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FullDocument {
    /// None.
    #[default]
    Default,
    /// As it is when the event is read.
    UpdateLookup,
    /// As it was after the change, or `null`.
    WhenAvailable,
    /// As it was after the change, or the stream ends.
    Required,
}

/// The options of a stream.
#[derive(Clone, Debug, Default)]
pub struct ChangeStreamRequest {
    /// Its beginning.
    pub start: StreamStart,
    /// The document that an update has.
    pub full_document: FullDocument,
    /// Whether updates, replacements and deletions have the former document.
    pub before_change: Image,
    /// Whether there are events of collections and indexes that are made, dropped and changed, too.
    pub is_expanded: bool,
    /// The stages behind `$changeStream`: an array.
    pub stages: Option<ValueBuf>,
    /// The rules by which strings compare.
    pub collation: Option<Collation>,
    /// A command's `let`.
    pub variables: Option<DocumentBuf>,
}
