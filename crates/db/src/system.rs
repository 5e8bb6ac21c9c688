//! The content of the engine's own tree, [`TreeId::SYSTEM`], that the database keeps: the one place
//! that knows its keys and records.
//!
//! A key is components joined by a zero byte (names hold none), the first one a letter:
//!
//! ```text
//! d/<db>                              the repository                      RepositoryRecord
//! r/<db>/<branch>                     a ref: the branch's HEAD            BranchRef
//! c/<db>/<commit id, 20 bytes>        a reference to the commit's chunk
//! w/<db>/<branch>/<collection>        a working entry                     WorkingEntry
//! l/<db>/<branch>/<sequence>          what moved the ref
//! m/<db>/<branch>                     a merge that waits
//! x/<db>/<branch>/<collection>/<key>  a conflict that waits
//! s/<session id, 16 bytes>[part]      a session's last write       retry::Record
//! y/<db>/<branch>/<conflict's id>     where that conflict lies
//! g/<db>/<tag>                        a tag
//! n/<db>/<remote>                     a remote: where it is
//! o/<db>/<remote>/<branch>            where a remote's branch was when it was last seen
//! p/<db>/<branch>                     what may be done to a branch
//! q/<db>/commit                       when and how commits are made
//! f/<db>                              where the database is used          fence
//! e/<db>/<commit id, 20 bytes>        the commit that took the place of an erased one
//! t/<db>/<sequence>                   a dropped database, to bring it back
//! k                                   what time it was when that was last recorded
//! u/<db>/<user>                       a user                              access
//! a/<db>/<role>                       a role                              access
//! h//                                 what logins of unknown users are answered by
//! ```
//!
//! Commit ids, session ids, sequences and keys of `_id`s may hold zeros, so they stand last.
//!
//! A collection has a working entry only if it was touched on this branch since it was last the
//! same as HEAD's by construction. Without one it is what HEAD's catalog says.
mod keys;
mod records;

pub use self::keys::*;
pub use self::records::*;
