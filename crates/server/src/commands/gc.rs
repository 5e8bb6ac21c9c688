//! `frondGc`: gives back the disk space of what is no longer needed.

use frond_db::{Error, ReclaimOptions};
use frond_doc::{DocumentBuilder, Value};

use crate::request::{Answer, Request};

/// The time that what was dropped can be brought back, unless a client says otherwise: two weeks.
pub const UNDO_SECONDS: u64 = 14 * 24 * 3600;

/// Collects, and answers when that is done; other clients go on meanwhile.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let quick = fields.boolean("quick")?;
    let undo_seconds = fields.count("undoSeconds")?.unwrap_or(UNDO_SECONDS);
    let bytes_a_second = fields.count("bytesPerSecond")?.filter(|rate| *rate > 0);
    let purge = fields.boolean("purge")?;
    fields.finish()?;
    let options = ReclaimOptions { thorough: !quick, bytes_a_second, purge };
    let undo_millis = undo_seconds.saturating_mul(1_000);
    let interrupt = request.operation.interrupt();
    let frond = &request.server.frond;
    let reclaimed = frond_vcs::reclaim_until(frond, undo_millis, options, &interrupt)?;
    let collected = reclaimed.collected;
    let long = |count: u64| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
    let mut answer = DocumentBuilder::new();
    answer
        .append("bytesBefore", long(collected.bytes_before))
        .append("bytesAfter", long(collected.bytes_after))
        .append("chunksLive", long(collected.chunks_live))
        .append("chunksRemoved", long(collected.chunks_dead))
        .append("chunksMoved", long(collected.chunks_moved))
        .append("packsRemoved", long(collected.packs_removed))
        .append("commitsForgotten", long(reclaimed.commits_forgotten))
        .append("changesForgotten", long(reclaimed.changes_forgotten))
        .append("stopped", Value::Boolean(collected.stopped));
    append_kept(&mut answer, request, undo_seconds)?;
    Ok(answer)
}

/// Appends what is kept so that it can be undone, why, and until when.
fn append_kept(
    answer: &mut DocumentBuilder,
    request: &Request<'_>,
    undo_seconds: u64,
) -> Result<(), Error> {
    let frond = &request.server.frond;
    let kept = frond_vcs::undoable(frond)?;
    let long = |count: u64| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
    let undo_millis = i64::try_from(undo_seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
    answer
        .begin_document("kept")
        .append("changes", long(kept.changes))
        .append("collections", long(kept.collections))
        .append("databases", long(kept.databases))
        .append("bytes", long(kept.bytes));
    if let Some((oldest, newest)) = kept.times_millis {
        answer
            .append("from", Value::DateTime(oldest.saturating_add(undo_millis)))
            .append("until", Value::DateTime(newest.saturating_add(undo_millis)));
    }
    let clock = frond.clock_state();
    if clock.is_doubted {
        answer.append("clock", Value::String(&clock.describe()));
    }
    answer.end();
    Ok(())
}
