//! `getMore` and `killCursors`.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use frond_db::{ChangedPlaces, Error, request_profile};
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::access::Action;
use crate::commands::change_stream::SILENT;
use crate::commands::reply;
use crate::cursors::{BatchSize, CheckedOut, CursorFacts, Following, OpenStream, Parked};
use crate::limits::AWAIT_DEFAULT;
use crate::request::{Answer, Request, collection_name};
use crate::shared::Counter;
use crate::waiting::WatchTarget;

/// A caller that waits with a thread notices so late that it is to end.
const KILL_NOTICED: Duration = Duration::from_millis(100);

/// Answers with a cursor's next batch.
pub fn get_more(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let id = request.argument().as_integer().expect("the table takes integers only");
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
    let mut checked_out = match request.parking.take_resumed() {
        Some(parked) => resume(request, id, parked)?,
        None => check_out(request, id, collection, is_timed)?,
    };
    if let Some(origin) = &checked_out.cursor().origin {
        request_profile::note(|| origin.plan.clone());
        request.operation.note_origin(origin);
    }
    check_rights(request, &checked_out.cursor().facts)?;
    let mut answer = reply::begin_batch("nextBatch");
    let is_awaited = checked_out.cursor().following == Following::EndAwaited;
    let size = BatchSize { documents_max: size, is_single: false, is_awaited };
    let is_last = match is_awaited {
        true => match await_batch(request, checked_out, &mut answer, (size, id, collection))? {
            Some((is_last, back)) => {
                checked_out = back;
                is_last
            }
            None => return Ok(answer),
        },
        false => {
            let cursor = checked_out.cursor();
            cursor.time_left.iter().for_each(|left| limit(request, *left));
            let is_last = cursor.next_batch(&mut answer, size, &request.room())?;
            cursor.time_left = request.operation.time_left();
            is_last
        }
    };
    reply::count_returned(request, checked_out.cursor());
    let facts = checked_out.cursor().facts.clone();
    let next_id = if is_last {
        drop(checked_out);
        0
    } else {
        checked_out.check_in(Instant::now());
        id
    };
    Ok(reply::end_batch(answer, next_id, &facts))
}

/// Has the operation end when the cursor's time is over, or as a fail point says.
fn limit(request: &Request<'_>, time_left: Duration) {
    request.operation.limit(time_left);
    let points = &request.server.fail_points;
    let fault = if points.are_on() { points.on_time_limit() } else { None };
    fault.into_iter().for_each(|fault| request.operation.set_time_limit_fault(fault));
}

/// Takes a cursor whose wait for events has ended.
fn resume<'a>(request: &'a Request<'_>, id: i64, parked: Parked) -> Result<CheckedOut<'a>, Error> {
    request.server.waiting.leave(&parked.place, &parked.operation);
    let checked_out = request.server.cursors.resume(id, parked.into_cursor());
    checked_out.check_killed()?;
    Ok(checked_out)
}

/// Takes a cursor to read from it.
fn check_out<'a>(
    request: &'a Request<'_>,
    id: i64,
    collection: &str,
    is_timed: bool,
) -> Result<CheckedOut<'a>, Error> {
    request.server.count(Counter::GetMore, 1);
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
    checked_out.cursor().client = Arc::clone(&request.peer.presence);
    Ok(checked_out)
}

/// Checks that the user who reads on still has the rights by which the cursor was opened.
fn check_rights(request: &Request<'_>, facts: &CursorFacts) -> Result<(), Error> {
    match (&request.rights, &facts.granted) {
        (Some(rights), Some(granted)) if !granted.is_within(&rights.grants) => {
            Err(request.authorization(rights).refused(request.database_name))
        }
        _ => Ok(()),
    }
}

/// The next batch of a cursor that waits: as soon as there is something, or empty when the time is
/// over. That time is `maxTimeMS` here. `None`: it waits without a thread, and goes on later.
fn await_batch<'a>(
    request: &'a Request<'_>,
    mut checked_out: CheckedOut<'a>,
    answer: &mut DocumentBuilder,
    (size, id, collection): (BatchSize, i64, &str),
) -> Result<Option<(bool, CheckedOut<'a>)>, Error> {
    let server = request.server;
    let until = request.operation.started() + request.common.time_max.unwrap_or(AWAIT_DEFAULT);
    let empty = answer.bytes();
    let mut entered: Option<Entered<'_>> = None;
    loop {
        // Before the batch is read, so that what comes meanwhile is seen.
        let is_late = until <= Instant::now() || server.drain.is_begun();
        let news = (!request.parking.may_park).then(|| server.frond.changed_places());
        let cursor = checked_out.cursor();
        let is_last = cursor.next_batch(answer, size, &request.room())?;
        if is_last || is_late || answer.bytes() > empty {
            return Ok(Some((is_last, checked_out)));
        }
        if let Some(news) = news {
            await_news(request, &news, until)?;
            continue;
        }
        let Some(ready) = entered.take() else {
            // A write before this point wakes nothing: so the loop looks once more.
            let place = place_of(request, collection, cursor.stream.is_some());
            entered = Some(Entered::new(request, place));
            continue;
        };
        if cursor.stream.as_ref().is_some_and(OpenStream::has_news) {
            entered = Some(ready);
            continue;
        }
        let cursor = Mutex::new(checked_out.park(&request.operation)?);
        let (operation, since) = (Arc::clone(&request.operation), Instant::now());
        let place = ready.stay();
        request.parking.park(Parked { operation, until, since, place, id, cursor });
        return Ok(None);
    }
}

/// Waits, with the thread, until something was written or the time is over.
fn await_news(request: &Request<'_>, news: &ChangedPlaces, until: Instant) -> Result<(), Error> {
    loop {
        request.operation.check_killed()?;
        let left = until.saturating_duration_since(Instant::now());
        let is_over = left.is_zero() || request.server.drain.is_begun();
        if is_over || news.wait(left.min(KILL_NOTICED), news.mark()) {
            return Ok(());
        }
    }
}

/// Returns the writes that wake a client waiting for a cursor of that collection.
fn place_of(request: &Request<'_>, collection: &str, is_stream: bool) -> WatchTarget {
    if is_stream && request.database_name == "admin" {
        return WatchTarget::All;
    }
    let Ok(database) = request.database() else { return WatchTarget::Unrecorded };
    let Some(branch) = database.branch() else { return WatchTarget::Unrecorded };
    let (name, branch) = (database.repository_name().to_owned(), branch.to_owned());
    match collection {
        _ if SILENT.contains(&&*name) || collection.starts_with("system.") => {
            WatchTarget::Unrecorded
        }
        _ if collection.starts_with("$cmd") => WatchTarget::Branch(name, branch),
        _ => WatchTarget::Collection(name, branch, collection.to_owned()),
    }
}

/// An operation among those that wait, until it is dropped.
struct Entered<'a> {
    request: &'a Request<'a>,
    /// `None`: it stays there.
    place: Option<WatchTarget>,
}

impl<'a> Entered<'a> {
    fn new(request: &'a Request<'_>, place: WatchTarget) -> Entered<'a> {
        let server = request.server;
        server.waiting.enter(&server.frond, &place, &request.operation);
        Entered { request, place: Some(place) }
    }

    /// Leaves it there.
    fn stay(mut self) -> WatchTarget {
        self.place.take().expect("it is taken once")
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            self.request.server.waiting.leave(place, &self.request.operation);
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
    for id in ids.iter().filter_map(|id| id.as_integer()) {
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
    let authorization = request.authorization(rights);
    // On the server it holds for all of them.
    authorization
        .cluster(Action::KillAnyCursor)
        .or_else(|_| authorization.here(&[Action::KillAnyCursor], collection))
}

fn append_ids(answer: &mut DocumentBuilder, name: &str, ids: &[i64]) {
    answer.begin_array(name);
    for id in ids {
        answer.push(Value::Int64(*id));
    }
    answer.end();
}
