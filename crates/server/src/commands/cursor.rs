//! `getMore` and `killCursors`.

use std::time::{Duration, Instant};

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::access::Action;
use crate::commands::reply;
use crate::cursors::{BatchSize, CursorFacts, Following, OpenCursor, OpenStream};
use crate::limits::{AWAIT_DEFAULT, AWAIT_MAX, AWAIT_STEP};
use crate::request::{Answer, Request, collection_name};
use crate::shared::Counter;

/// Who waits for an event notices so late that it is to end.
const KILL_NOTICED: Duration = Duration::from_millis(100);

/// Answers with a cursor's next batch.
pub fn get_more(request: &Request<'_>) -> Answer {
    request.server.count(Counter::GetMore, 1);
    let mut fields = request.fields()?;
    let id = match request.argument() {
        Value::Int64(id) => id,
        other => return Err(fields.wrong_type("getMore", other, "type 'long'")),
    };
    let collection = fields.value("collection").ok_or_else(|| fields.missing("collection"))?;
    // The cursors of `aggregate: 1` and of listings have names that begin with a dollar.
    let collection = match collection {
        Value::String(name) if name.starts_with("$cmd") => name,
        other => collection_name(request.database_name, other)?,
    };
    // A batch size of 0 means "no limit" here.
    let size = fields.count("batchSize")?.filter(|size| *size > 0);
    let is_timed = fields.value("maxTimeMS").is_some();
    fields.ignore(&["term", "lastKnownCommittedOpTime"]);
    fields.finish()?;
    let namespace = request.namespace(collection);
    let session = request.common.session;
    let transaction = request.current.as_ref().map(|current| current.slot.number);
    let mut checked_out = request.server.cursors.check_out(
        id,
        &namespace,
        request.peer.digest(),
        session,
        transaction,
    )?;
    check_rights(request, &checked_out.cursor().facts)?;
    if is_timed && checked_out.cursor().following != Following::EndAwaited {
        checked_out.check_in(Instant::now());
        let message = "cannot set maxTimeMS on getMore command for a non-awaitData cursor";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let opened = checked_out.cursor().facts.api;
    let api = request.common.api;
    if let Err(error) = api.check_same(request.name, "the cursor-creating command", opened) {
        checked_out.check_in(Instant::now());
        return Err(error);
    }
    request.server.fail_points.on_get_more()?;
    checked_out.cursor().current.set(&request.operation);
    let mut answer = reply::begin_batch("nextBatch");
    let cursor = checked_out.cursor();
    let is_awaited = cursor.following == Following::EndAwaited;
    let size = BatchSize { documents_max: size, is_single: false, is_awaited };
    let is_last = match is_awaited {
        true => await_batch(request, cursor, &mut answer, size)?,
        false => cursor.next_batch(&mut answer, size, &request.room())?,
    };
    let facts = cursor.facts.clone();
    let next_id = if is_last {
        drop(checked_out);
        0
    } else {
        checked_out.check_in(Instant::now());
        id
    };
    Ok(reply::end_batch(answer, next_id, &facts))
}

/// Checks that who reads on may still do what opened the cursor.
fn check_rights(request: &Request<'_>, facts: &CursorFacts) -> Result<(), Error> {
    match (&request.rights, &facts.granted) {
        (Some(rights), Some(granted)) if !granted.is_within(&rights.grants) => {
            Err(request.asked(rights).refused(request.database_name))
        }
        _ => Ok(()),
    }
}

/// The next batch of a cursor that waits: as soon as there is something, or empty when the time is
/// over. That time is `maxTimeMS` here.
fn await_batch(
    request: &Request<'_>,
    cursor: &mut OpenCursor,
    answer: &mut DocumentBuilder,
    size: BatchSize,
) -> Result<bool, Error> {
    let time_max = request.common.time_max.unwrap_or(AWAIT_DEFAULT).min(AWAIT_MAX);
    let until = request.operation.started() + time_max;
    let empty = answer.bytes();
    loop {
        // Told before the batch is read, so that what comes meanwhile is seen.
        let time = request.server.operation_time();
        let is_last = cursor.next_batch(answer, size, &request.room())?;
        if is_last || answer.bytes() > empty {
            return Ok(is_last);
        }
        if let Some(stream) = &cursor.stream {
            if !await_event(request, stream, until)? {
                return Ok(false);
            }
            continue;
        }
        while request.server.operation_time() == time {
            request.operation.check_killed()?;
            if Instant::now() >= until || request.server.drain.is_begun() {
                return Ok(false);
            }
            std::thread::sleep(AWAIT_STEP);
        }
    }
}

/// Waits until something was written behind what a change stream has read; false if the time is
/// over before.
fn await_event(request: &Request<'_>, stream: &OpenStream, until: Instant) -> Result<bool, Error> {
    loop {
        request.operation.check_killed()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || request.server.drain.is_begun() {
            return Ok(false);
        }
        if stream.wait(left.min(KILL_NOTICED)) {
            return Ok(true);
        }
    }
}

/// Closes cursors.
pub fn kill(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = request.argument();
    let collection = match name {
        Value::String(name) if name.starts_with("$cmd") => name,
        other => collection_name(request.database_name, other)?,
    };
    let ids = fields.array("cursors")?.ok_or_else(|| fields.missing("cursors"))?;
    let namespace = request.namespace(collection);
    let (mut killed, mut missing) = (Vec::new(), Vec::new());
    for value in ids.iter() {
        let Value::Int64(id) = value else {
            return Err(fields.wrong_type("cursors", value, "type 'long'"));
        };
        check_owner(request, id, collection)?;
        let list =
            if request.server.cursors.kill(id, &namespace) { &mut killed } else { &mut missing };
        list.push(id);
    }
    fields.finish()?;
    let mut answer = DocumentBuilder::new();
    append_ids(&mut answer, "cursorsKilled", &killed);
    append_ids(&mut answer, "cursorsNotFound", &missing);
    append_ids(&mut answer, "cursorsAlive", &[]);
    append_ids(&mut answer, "cursorsUnknown", &[]);
    Ok(answer)
}

/// Checks that the client may close a cursor: another user's only with the right to.
fn check_owner(request: &Request<'_>, id: i64, collection: &str) -> Result<(), Error> {
    let (Some(rights), Some(owner)) = (&request.rights, request.server.cursors.user_of(id)) else {
        return Ok(());
    };
    if owner == rights.login.digest {
        return Ok(());
    }
    let collection = Some(collection).filter(|name| !name.starts_with("$cmd"));
    request.asked(rights).here(&[Action::KillAnyCursor], collection)
}

fn append_ids(answer: &mut DocumentBuilder, name: &str, ids: &[i64]) {
    answer.begin_array(name);
    for id in ids {
        answer.push(Value::Int64(*id));
    }
    answer.end();
}
