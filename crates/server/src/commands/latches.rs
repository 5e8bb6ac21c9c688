//! `locks`, in reports on operations and in `serverStatus`: the latches that were taken, under the
//! names of MongoDB's locks that are nearest to them.
//!
//! What writes to a collection shares the latches of the collection and of its database (`w`, as
//! MongoDB's intent locks); what replaces or removes whole trees holds them alone (`W`). Reads take
//! none.

use frond_doc::{DocumentBuilder, Value};
use frond_query::examined::Latches;

use crate::commands::reply::long;

/// Appends how often each was taken.
pub fn append(answer: &mut DocumentBuilder, latches: Latches) {
    answer.begin_document("locks");
    for (name, shared, exclusive) in [
        ("Database", latches.databases_shared, latches.databases_exclusive),
        ("Collection", latches.collections_shared, latches.collections_exclusive),
    ] {
        if shared + exclusive == 0 {
            continue;
        }
        answer.begin_document(name).begin_document("acquireCount");
        for (mode, count) in [("w", shared), ("W", exclusive)] {
            if 0 < count {
                answer.append(mode, Value::Int64(long(count)));
            }
        }
        answer.end().end();
    }
    answer.end();
}
