//! `frondHandOver`: one step of a database's move to another line, as a router asks for it
//! (docs/router.md).
//!
//! `generation` numbers the attempt to move it. A step of one that is over is refused (117), and
//! each step may be sent again.
//!
//! | step | where | what |
//! |---|---|---|
//! | `look` | both | the fence, and what a copy must have; why it can't move |
//! | `commit` | source | commits every branch, then as `look` |
//! | `receive` | target | a copy may come: fences it off |
//! | `copy` | target | fetches from the leader `from`; with `handover`, becomes what that says |
//! | `refs`, `chunks` | source | what the target asks for meanwhile |
//! | `leave` | source | nothing changes from now on |
//! | `records` | source, target | sends sessions' records, or with `records` remembers them |
//! | `take`, `left`, `stay` | | the fence, once it is clear where the database is |
//! | `drop` | | a copy that stayed behind, with the fence of the latest move |

use bytes::Bytes;
use frond_db::Error;
use frond_db::fence::{Fence, FenceState, FenceStep};
use frond_db::retry::CarriedRecord;
use frond_doc::{Array, Binary, Document, DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::remote::{DataRemote, Remote, WatchedRemote};
use frond_vcs::{Handover, Repository};

use crate::commands::history;
use crate::commands::reply::long;
use crate::fields::Fields;
use crate::line_remote::{self, LineRemote, RouterLogin};
use crate::remote_opener;
use crate::request::{Answer, Request};

/// Records of one answer: one holds the document of a `findAndModify` at most.
const RECORDS_MAX: usize = 1_000;
/// An answer ends with the record that reaches this.
const ANSWER_BYTES: usize = 8 << 20;

/// Does a step.
///
/// # Errors
/// `ConflictingOperationInProgress` if another move is known; as the step's own.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = request.argument();
    let name = name.as_str().ok_or_else(|| Error::bad_value("frondHandOver names a database"))?;
    let step = fields.required_string("step")?;
    let generation = fields.integer("generation")?;
    let line = fields.string("line")?.unwrap_or_default();
    let fence_step = match step {
        "receive" => FenceStep::Receive,
        "leave" => FenceStep::Leave,
        "take" => FenceStep::Take,
        "left" => FenceStep::Left,
        "stay" => FenceStep::Stay,
        "look" => return look(request, name, generation, fields),
        "commit" => return commit(request, name, generation, line, fields),
        "copy" => return copy(request, name, needed(generation)?, fields),
        "records" => return records(request, fields),
        "refs" => return refs(request, name, fields),
        "chunks" => return chunks(request, name, fields),
        "drop" => return drop_copy(request, name, fields),
        _ => return Err(Error::bad_value(format!("frondHandOver has no step {step}"))),
    };
    end(fields)?;
    let frond = &request.server.frond;
    // A name that no database can have has no fence.
    let repository = Repository::open(frond, name)?;
    let fence =
        frond.step_fence(repository.repository_name(), needed(generation)?, fence_step, line)?;
    let mut answer = DocumentBuilder::new();
    append_fence(&mut answer, &fence);
    Ok(answer)
}

/// Ends the fields of a step: those of other steps say nothing to it.
fn end(mut fields: Fields<'_>) -> Result<(), Error> {
    fields.ignore(&["after", "from", "generation", "handover", "hashes", "line", "records", "tls"]);
    fields.finish()
}

fn needed(generation: Option<i64>) -> Result<i64, Error> {
    generation.ok_or_else(|| Error::bad_value("this step needs the generation of the move"))
}

/// The database, for a step of its move.
fn of_move(
    request: &Request<'_>,
    name: &str,
    generation: Option<i64>,
) -> Result<Repository, Error> {
    let database = request.server.frond.database_while(name, &request.operation.interrupt())?;
    let database = Repository::from(database.interruptible(request.operation.interrupt()));
    Ok(match generation {
        Some(generation) => database.moved_by(generation),
        None => database,
    })
}

fn append_fence(answer: &mut DocumentBuilder, fence: &Fence) {
    answer
        .append("generation", Value::Int64(fence.generation))
        .append("state", Value::String(fence.state.name()))
        .append("line", Value::String(&fence.line));
}

fn look(request: &Request<'_>, name: &str, generation: Option<i64>, fields: Fields<'_>) -> Answer {
    end(fields)?;
    let database = of_move(request, name, generation)?;
    let mut answer = DocumentBuilder::new();
    if let Some(fence) = request.server.frond.fence(database.repository_name())? {
        append_fence(&mut answer, &fence);
    }
    if !database.exists()? {
        return Ok(answer);
    }
    answer.begin_array("notMovable");
    for what in database.not_movable()? {
        answer.push(Value::String(&what));
    }
    answer.end();
    answer.append("handover", Value::from(&database.handover()?.to_document()));
    Ok(answer)
}

fn commit(
    request: &Request<'_>,
    name: &str,
    generation: Option<i64>,
    line: &str,
    fields: Fields<'_>,
) -> Answer {
    end(fields)?;
    let database = of_move(request, name, generation)?;
    let message = format!("Before {name} goes to the line {line}");
    let author = history::author_default(request);
    let count = database.commit_all(&message, &author)?;
    let mut answer = DocumentBuilder::new();
    answer.append("commits", Value::Int64(long(count as u64)));
    answer.append("handover", Value::from(&database.handover()?.to_document()));
    Ok(answer)
}

/// Copies from the source's leader, whose address is `from`.
fn copy(request: &Request<'_>, name: &str, generation: i64, mut fields: Fields<'_>) -> Answer {
    let from = fields.required_string("from")?;
    let by_tls = fields.boolean("tls")?;
    let handover = fields.document("handover")?.map(Handover::parse).transpose()?;
    end(fields)?;
    let database = of_move(request, name, Some(generation))?;
    let remote = remote(request, from, by_tls, database.repository_name())?;
    if let Some(handover) = &handover {
        check_not_behind(&remote, handover, from)?;
    }
    let (operation, url) = (&request.operation, format!("mongodb://{from}/{name}"));
    let show = &mut |moved: &_| remote_opener::show(operation, moved);
    let moved = match &handover {
        Some(handover) => database.take_after(handover, &url, &remote, show)?,
        None => database.copy_from(&url, &remote, show)?,
    };
    let mut answer = DocumentBuilder::new();
    answer
        .append("commits", Value::Int64(long(moved.commits)))
        .append("chunks", Value::Int64(long(moved.chunks)))
        .append("bytes", Value::Int64(long(moved.bytes)));
    Ok(answer)
}

/// The database at another line, read as the user who asks.
fn remote(
    request: &Request<'_>,
    address: &str,
    by_tls: bool,
    database: &str,
) -> Result<WatchedRemote, Error> {
    let server = request.server;
    let user = request.rights.as_ref().map(|rights| &rights.login.user);
    let login = match (&server.router_key, user) {
        (Some(key), Some(user)) => {
            Some(RouterLogin { key, database: &user.database, user: &user.user })
        }
        _ => None,
    };
    let tls = by_tls.then(|| server.line_tls.clone());
    let remote = LineRemote::connect(address, tls.as_ref(), login.as_ref(), database)?;
    Ok(WatchedRemote::new(Box::new(remote), request.operation.interrupt()))
}

/// Answers the requests of the other line while it copies.
fn refs(request: &Request<'_>, name: &str, fields: Fields<'_>) -> Answer {
    end(fields)?;
    let remote = DataRemote::new(request.server.frond.clone(), name)?;
    let mut answer = DocumentBuilder::new();
    line_remote::append_refs(&mut answer, remote.state()?.as_ref());
    Ok(answer)
}

fn chunks(request: &Request<'_>, name: &str, mut fields: Fields<'_>) -> Answer {
    let hashes = fields.value("hashes");
    end(fields)?;
    let Some(Value::Binary(hashes)) = hashes else {
        return Err(Error::bad_value("'hashes' is what the other line lacks"));
    };
    let remote = DataRemote::new(request.server.frond.clone(), name)?;
    let mut answer = DocumentBuilder::new();
    line_remote::append_chunks(&mut answer, &remote, hashes.bytes)?;
    Ok(answer)
}

/// Refuses a member that doesn't have all of what is handed over: it doesn't lead any more.
fn check_not_behind(remote: &dyn Remote, handover: &Handover, address: &str) -> Result<(), Error> {
    if remote.state()?.is_some_and(|state| handover.is_at(&state)) {
        return Ok(());
    }
    let message = format!("{address} doesn't have the last commits");
    Err(Error::invalid(Code::HostUnreachable, message))
}

fn drop_copy(request: &Request<'_>, name: &str, fields: Fields<'_>) -> Answer {
    end(fields)?;
    let frond = &request.server.frond;
    let database = of_move(request, name, None)?;
    let fence = frond.fence(database.repository_name())?;
    let Some(fence) = fence.filter(|fence| fence.state == FenceState::Copy) else {
        let message = format!("database {name} is no copy that stayed behind");
        return Err(Error::invalid(Code::IllegalOperation, message));
    };
    database.moved_by(fence.generation).drop_database()?;
    Ok(DocumentBuilder::new())
}

fn records(request: &Request<'_>, mut fields: Fields<'_>) -> Answer {
    let after = fields.value("after");
    let brought = fields.array("records")?;
    end(fields)?;
    let frond = &request.server.frond;
    let mut answer = DocumentBuilder::new();
    if let Some(brought) = brought {
        let count = frond.adopt_session_records(&parse(brought)?)?;
        answer.append("adopted", Value::Int64(long(count as u64)));
        return Ok(answer);
    }
    let after = match after {
        Some(Value::Binary(after)) => Some(after.bytes),
        Some(_) => return Err(Error::bad_value("'after' is the name of a record")),
        None => None,
    };
    let mut bytes = 0;
    answer.begin_array("records");
    for CarriedRecord { name, record } in frond.session_records(after, RECORDS_MAX)? {
        answer
            .push_begin_document()
            .append("name", binary(&name))
            .append("record", binary(&record))
            .end();
        bytes += record.len();
        if ANSWER_BYTES <= bytes {
            break;
        }
    }
    answer.end();
    Ok(answer)
}

fn binary(bytes: &Bytes) -> Value<'_> {
    Value::Binary(Binary { subtype: 0, bytes })
}

fn parse(records: Array<'_>) -> Result<Vec<CarriedRecord>, Error> {
    let records = records.iter().map(|record| record.as_document().and_then(read));
    let records: Option<Vec<CarriedRecord>> = records.collect();
    records.ok_or_else(|| Error::bad_value("a record has a name and bytes"))
}

fn read(record: Document<'_>) -> Option<CarriedRecord> {
    let bytes = |name| match record.get(name)? {
        Value::Binary(binary) => Some(Bytes::copy_from_slice(binary.bytes)),
        _ => None,
    };
    Some(CarriedRecord { name: bytes("name")?, record: bytes("record")? })
}
