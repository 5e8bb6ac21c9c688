//! `serverStatus.metrics`: how often commands ran, and what they did.

use frond_doc::DocumentBuilder;

use super::activity::long;
use crate::shared::Shared;
use crate::usage::DocumentEvent;

/// Appends the section.
pub(super) fn append(answer: &mut DocumentBuilder, server: &Shared) {
    answer.begin_document("metrics");
    append_commands(answer, server);
    append_cursors(answer, server);
    let work = server.usage.work();
    answer.begin_document("document");
    for (event, name) in DocumentEvent::ALL {
        answer.append(name, long(work.documents(event)));
    }
    answer.end();
    let examined = work.examined();
    let (engine, _) = server.frond.counters();
    answer
        .begin_document("operation")
        .append("killedDueToMaxTimeMSExpired", long(examined.out_of_time))
        .append("scanAndOrder", long(examined.sorts))
        .append("writeConflicts", long(engine.conflicts))
        .end()
        .begin_document("queryExecutor")
        .append("scanned", long(examined.keys))
        .append("scannedObjects", long(examined.documents))
        .begin_document("collectionScans")
        .append("nonTailable", long(examined.collection_scans - examined.tailable_scans))
        .append("total", long(examined.collection_scans))
        .end()
        .end();
    let expired = work.expired();
    answer
        .begin_document("ttl")
        .append("deletedDocuments", long(expired.documents))
        .append("passes", long(expired.passes))
        .end()
        .end();
}

fn append_commands(answer: &mut DocumentBuilder, server: &Shared) {
    answer.begin_document("commands");
    for (name, total, failed) in server.usage.commands().list() {
        answer
            .begin_document(name)
            .append("failed", long(failed))
            .append("total", long(total))
            .end();
    }
    answer.end();
}

fn append_cursors(answer: &mut DocumentBuilder, server: &Shared) {
    let cursors = server.cursors.counts();
    answer
        .begin_document("cursor")
        .append("timedOut", long(cursors.timed_out))
        .begin_document("open")
        .append("noTimeout", long(cursors.no_timeout as u64))
        .append("pinned", long(cursors.pinned as u64))
        .append("total", long(cursors.open as u64))
        .end()
        .end();
}
