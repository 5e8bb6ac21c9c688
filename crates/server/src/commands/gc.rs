//! `frondGc`: gives back the disk space of what nobody needs any more.

use frond_db::ReclaimOptions;
use frond_doc::{DocumentBuilder, Value};

use crate::request::{Answer, Request};

/// Collects, and answers when that is done; other clients go on meanwhile.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let quick = fields.boolean("quick")?;
    let bytes_a_second = fields.count("bytesPerSecond")?.filter(|rate| *rate > 0);
    fields.finish()?;
    let options = ReclaimOptions { thorough: !quick, bytes_a_second };
    let collected = request.server.frond.reclaim(options)?;
    let long = |count: u64| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
    let mut answer = DocumentBuilder::new();
    answer
        .append("bytesBefore", long(collected.bytes_before))
        .append("bytesAfter", long(collected.bytes_after))
        .append("chunksLive", long(collected.chunks_live))
        .append("chunksRemoved", long(collected.chunks_dead))
        .append("chunksMoved", long(collected.chunks_moved))
        .append("packsRemoved", long(collected.packs_removed))
        .append("stopped", Value::Boolean(collected.stopped));
    Ok(answer)
}
