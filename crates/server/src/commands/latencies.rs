//! `top`, and what of time and counts other answers have: `opLatencies`, `latencyStats`.

use frond_doc::{DocumentBuilder, Value};

use crate::commands::reply;
use crate::request::{Answer, Request};
use crate::usage::{CommandTime, Event, Latencies, Latency};

/// Answers with the usage of collections since the server began.
pub fn top(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    answer.begin_document("totals").append("note", Value::String("all times in microseconds"));
    for (namespace, usage) in request.server.usage.namespaces() {
        let (all, writing) = (usage.spent_in_all(), usage.spent_writing());
        // A command may be counted between the two readings.
        let reading = CommandTime {
            micros: all.micros.saturating_sub(writing.micros),
            count: all.count.saturating_sub(writing.count),
        };
        answer.begin_document(&namespace);
        append_spent(&mut answer, "total", all);
        append_spent(&mut answer, "readLock", reading);
        append_spent(&mut answer, "writeLock", writing);
        for event in Event::ALL {
            append_spent(&mut answer, event.name(), usage.spent(event));
        }
        answer.end();
    }
    answer.end();
    Ok(answer)
}

fn append_spent(answer: &mut DocumentBuilder, name: &str, spent: CommandTime) {
    answer
        .begin_document(name)
        .append("time", Value::Int64(reply::long(spent.micros)))
        .append("count", Value::Int64(reply::long(spent.count)))
        .end();
}

/// Appends how long commands took, by kind; with histograms how many took how long, too.
pub fn append(answer: &mut DocumentBuilder, latencies: &Latencies, histograms: bool) {
    for kind in Latency::ALL {
        let spent = latencies.spent(kind);
        answer.begin_document(kind.name());
        if histograms {
            answer.begin_array("histogram");
            for (micros, count) in latencies.histogram(kind) {
                answer
                    .push_begin_document()
                    .append("micros", Value::Int64(reply::long(micros)))
                    .append("count", Value::Int64(reply::long(count)))
                    .end();
            }
            answer.end();
        }
        answer
            .append("latency", Value::Int64(reply::long(spent.micros)))
            .append("ops", Value::Int64(reply::long(spent.count)))
            .end();
    }
}
