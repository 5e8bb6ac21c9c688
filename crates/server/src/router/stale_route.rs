//! Recognises answers that show a stale route: the database has moved, or is moving, and the line
//! refuses requests for it (`frond_db::fence`).
//!
//! 1. `StaleDbVersion` (249): refused at the door, nothing was done. The request is sent to where
//!    the database is, once the router knows that.
//! 2. `UserWritesBlocked` (371): refused within, since the fence was put up meanwhile; or by a
//!    branch that its users have closed, which only a new look at the table can distinguish. A
//!    write with a number is sent again: its line knows what of it was done. So is what does one
//!    thing. Other writes may have been done in part: their answer is the client's.
//! 3. Within a transaction either is its end, which drivers begin again
//!    (`TransientTransactionError`).

use frond_doc::Document;
use frond_query::Code;

use super::frames::answer_body;
use super::routed_request::RoutedRequest;

/// The treatment of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is the client's.
    Answer,
    /// The database isn't used there: what was asked is to be sent elsewhere.
    Moved,
    /// Perhaps so: it is to be sent elsewhere if the database has moved.
    PerhapsMoved,
}

/// Commands of which a part may be done, and the rest be refused, without a number that says so.
const IN_PARTS: &[&str] =
    &["aggregate", "bulkWrite", "delete", "insert", "mapReduce", "mapreduce", "update"];

/// Returns the treatment of an answer.
pub(super) fn verdict(answer: &[u8], ask: &RoutedRequest<'_>) -> Verdict {
    let Ok(body) = answer_body(answer) else { return Verdict::Answer };
    match code_of(body) {
        Some(Code::StaleDbVersion) => Verdict::Moved,
        Some(Code::UserWritesBlocked) if may_be_sent_again(ask) => Verdict::PerhapsMoved,
        None if has_blocked_write(body) && may_be_sent_again(ask) => Verdict::PerhapsMoved,
        _ => Verdict::Answer,
    }
}

fn may_be_sent_again(ask: &RoutedRequest<'_>) -> bool {
    // Nothing was done of a transaction, since it can't be committed any more.
    ask.in_transaction() || ask.number().is_some() || !IN_PARTS.contains(&ask.name)
}

fn code_of(document: Document<'_>) -> Option<Code> {
    let code = document.get("code")?.as_integer()?;
    i32::try_from(code).ok().map(Code::of)
}

/// Whether a statement was refused, of `insert`, `update` and `delete`, or of `bulkWrite`.
fn has_blocked_write(body: Document<'_>) -> bool {
    let errors = body.get("writeErrors").and_then(|errors| errors.as_array());
    let batch = body.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch"));
    let batch = batch.filter(|_| body.get("nErrors").is_some()).and_then(|rows| rows.as_array());
    let rows = errors.iter().chain(batch.iter()).flat_map(|rows| rows.iter());
    let codes = rows.filter_map(|row| code_of(row.as_document()?));
    codes.into_iter().any(|code| matches!(code, Code::UserWritesBlocked | Code::StaleDbVersion))
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, extended_json};

    use super::*;
    use crate::wire::Message;

    fn check(command: &str, answer: &str, expected: Verdict) {
        let parse = |text: &str| -> DocumentBuf { extended_json::parse(text).expect("JSON") };
        let message = Message::new(parse(answer)).encode(2, 1);
        let command = parse(command);
        let ask = RoutedRequest::read(command.view()).expect("a command");
        assert_eq!(verdict(&message, &ask), expected, "{answer}");
    }

    #[test]
    fn requests_that_did_nothing_are_sent_elsewhere() {
        let at_door = r#"{"ok": 0.0, "code": 249, "errmsg": "elsewhere"}"#;
        check(r#"{"find": "items"}"#, at_door, Verdict::Moved);
        check(r#"{"update": "items"}"#, at_door, Verdict::Moved);
        let within = r#"{"ok": 0.0, "code": 371}"#;
        check(r#"{"createIndexes": "items"}"#, within, Verdict::PerhapsMoved);
        check(r#"{"aggregate": "items"}"#, within, Verdict::Answer);
        let writes = r#"{"ok": 1.0, "n": 1, "writeErrors": [{"index": 1, "code": 371}]}"#;
        check(
            r#"{"insert": "items", "txnNumber": {"$numberLong": "3"}}"#,
            writes,
            Verdict::PerhapsMoved,
        );
        check(r#"{"insert": "items"}"#, writes, Verdict::Answer);
        let part = r#"{"insert": "items", "txnNumber": 3, "autocommit": false}"#;
        check(part, writes, Verdict::PerhapsMoved);
        let bulk =
            r#"{"ok": 1.0, "nErrors": 1, "cursor": {"firstBatch": [{"ok": 0.0, "code": 371}]}}"#;
        check(
            r#"{"bulkWrite": 1, "txnNumber": {"$numberLong": "3"}}"#,
            bulk,
            Verdict::PerhapsMoved,
        );
        for other in [
            r#"{"ok": 0.0, "code": 112}"#,
            r#"{"ok": 1.0, "n": 1}"#,
            r#"{"ok": 1.0, "writeErrors": [{"index": 0, "code": 11000}]}"#,
            r#"{"ok": 1.0, "cursor": {"firstBatch": [{"code": 371}]}}"#,
        ] {
            check(
                r#"{"find": "items", "txnNumber": {"$numberLong": "3"}}"#,
                other,
                Verdict::Answer,
            );
        }
    }
}
