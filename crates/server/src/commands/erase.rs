//! `frondErase`: takes a document, or a field, out of all history, and off the disk.
//!
//! It can't be undone, so it is only done with `confirm: true`; `dryRun: true` shows what would be.
//! On a replica set it ends once it is gone from all members' disks, or reports from which it
//! isn't.

use std::time::{Duration, Instant};

use frond_db::{Error, ReclaimOptions};
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::{EraseRequest, Erased};

use crate::commands::{gc, reply};
use crate::replica::Replica;
use crate::request::{Answer, Request};

/// The time that the members have to remove it from their disks before the laggards are reported.
const MEMBERS_WAIT: Duration = Duration::from_secs(60);
/// The time that what began before has to end before it is reported.
const OTHERS_WAIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Erases, then removes dead chunks from every pack, and reports whether all of it went.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    if fields.boolean("commits")? {
        fields.finish()?;
        return commits(request);
    }
    let collection = fields.required_string("collection")?.to_owned();
    let document = fields.value_or_null("document").map(|id| id.to_buf());
    let documents = fields.array("documents")?;
    let mut erase = EraseRequest { collection, ..EraseRequest::default() };
    erase.documents.extend(document);
    erase.documents.extend(documents.iter().flat_map(|ids| ids.iter()).map(|id| id.to_buf()));
    erase.fields = fields.texts("fields")?.unwrap_or_default();
    erase.dry_run = fields.boolean("dryRun")?;
    let confirms = fields.boolean("confirm")?;
    fields.finish()?;
    if !confirms && !erase.dry_run {
        let message = "frondErase can't be undone: it needs confirm: true (or dryRun: true)";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let database = request.database()?;
    let erased = database.erase(&erase)?;
    if !erase.dry_run {
        request.server.profiler.note_erased();
    }
    let mut answer = DocumentBuilder::new();
    answer.append("documents", reply::number(erased.documents)).begin_array("commits");
    for (old, new) in &erased.commits {
        answer.push_begin_document();
        answer.append("old", Value::String(&old.to_string()));
        answer.append("new", Value::String(&new.to_string())).end();
    }
    answer.end();
    for (name, list) in
        [("branches", &erased.branches), ("tags", &erased.tags), ("remotes", &erased.remotes)]
    {
        answer.begin_array(name);
        for each in list {
            answer.push(Value::String(each));
        }
        answer.end();
    }
    if !erase.dry_run {
        await_others(request, &erased)?;
        let left = remove(request)?;
        answer.append("underWay", reply::number(erased.under_way() as u64));
        answer.append("chunksLeft", reply::number(database.erased_left(&erased)?));
        if request.server.replica.is_some() {
            answer.begin_array("membersLeft");
            left.iter().for_each(|member| {
                answer.push(Value::String(member));
            });
            answer.end();
        }
    }
    Ok(answer)
}

/// Waits for what began before the erase: it may hold what was erased, if only to fail with it.
fn await_others(request: &Request<'_>, erased: &Erased) -> Result<(), Error> {
    let until = Instant::now() + OTHERS_WAIT;
    while 0 < erased.under_way() && Instant::now() < until {
        request.operation.interrupt().check()?;
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Removes what is dead from the disk, on all members of a set. Returns those that aren't known to
/// have done that.
fn remove(request: &Request<'_>) -> Result<Vec<String>, Error> {
    let frond = &request.server.frond;
    let undo_millis = gc::UNDO_SECONDS.saturating_mul(1_000);
    let Some(replica) = &request.server.replica else {
        let options = ReclaimOptions { thorough: true, bytes_a_second: None, purge: true };
        let interrupt = request.operation.interrupt();
        frond_vcs::reclaim_until(frond, undo_millis, options, &interrupt)?;
        return Ok(Vec::new());
    };
    frond_vcs::forget(frond, undo_millis)?;
    let number = replica.want_purge(frond)?;
    await_members(replica, number, request)
}

fn await_members(
    replica: &Replica,
    number: u64,
    request: &Request<'_>,
) -> Result<Vec<String>, Error> {
    let until = Instant::now() + MEMBERS_WAIT;
    loop {
        let left = replica.left_to_purge(number);
        if left.is_empty() || until < Instant::now() || !replica.is_primary() {
            return Ok(left);
        }
        request.operation.interrupt().check()?;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Answers with pairs of commits: the erased one and the one in its place.
fn commits(request: &Request<'_>) -> Answer {
    let mut answer = DocumentBuilder::new();
    answer.begin_array("commits");
    for replaced in request.database()?.erased_commits()? {
        answer.push_begin_document();
        answer.append("old", Value::String(&replaced.old.to_string()));
        answer.append("new", Value::String(&replaced.new.to_string()));
        answer.append("time", Value::DateTime(replaced.time_millis)).end();
    }
    answer.end();
    Ok(answer)
}
