//! `frond doctor --store`: whether a bucket can be relied on, and how fast it is.

use std::io::Write;
use std::time::Duration;

use frond_doc::{DocumentBuilder, Value};
use frond_remote::store_probe::{StoreReport, probe};

use crate::commands::transfer::failure;
use crate::failure::Failure;
use crate::output::{count_value, counted, json};
use crate::terminal::Terminal;

/// Probes the store and reports what was found.
///
/// # Errors
/// [`Failure::Failed`], with JSON [`Failure::Reported`], if it can't be relied on.
pub fn look_at(terminal: &mut Terminal, store: &str, as_json: bool) -> Result<(), Failure> {
    let report = probe(store).map_err(failure)?;
    if as_json {
        writeln!(terminal, "{}", as_document(&report))?;
        return if report.is_safe() { Ok(()) } else { Err(Failure::Reported) };
    }
    let races = &report.races;
    if races.rounds > 0 {
        let rounds = counted(races.rounds, "round");
        writeln!(terminal, "conditional put: {rounds} in which 32 writers raced")?;
    }
    if races.nobody_won > 0 {
        writeln!(terminal, "{} of them had no winner: that is slow, but safe", races.nobody_won)?;
    }
    if !report.is_safe() {
        terminal.finish()?;
        return Err(Failure::failed(fault(&report)));
    }
    writeln!(
        terminal,
        "lost replies: {}, {} of puts that were done; the outcome of each was found out",
        report.replies_lost, report.lost_were_done
    )?;
    writeln!(terminal, "{:<20}{:>10}{:>10}", "milliseconds", "p50", "p99")?;
    for latency in &report.latencies {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let (p50, p99) = (millis(latency.p50), millis(latency.p99));
        writeln!(terminal, "{:<20}{p50:>10.1}{p99:>10.1}", latency.what)?;
    }
    writeln!(terminal, "each had one winner, as it must: the store can be relied on")?;
    Ok(())
}

/// Returns the fault of the store.
fn fault(report: &StoreReport) -> String {
    let races = &report.races;
    let what = match races.ignored.as_slice() {
        [] if races.is_safe() => {
            format!("{} lost replies were of another put than it says", report.lost_mistaken)
        }
        [] => format!("two won {} rounds, and {} were undone", races.two_won, races.lost),
        headers => format!("it ignores {}", headers.join(" and ")),
    };
    format!("the store can't be relied on, pushes and commits would be lost: {what}")
}

fn as_document(report: &StoreReport) -> String {
    let mut answer = DocumentBuilder::new();
    answer.append("safe", Value::Boolean(report.is_safe()));
    for (name, count) in [
        ("rounds", report.races.rounds),
        ("nobodyWon", report.races.nobody_won),
        ("twoWon", report.races.two_won),
        ("lost", report.races.lost),
        ("headersIgnored", report.races.ignored.len() as u64),
        ("repliesLost", u64::from(report.replies_lost)),
        ("repliesMistaken", u64::from(report.lost_mistaken)),
    ] {
        answer.append(name, count_value(count));
    }
    for latency in &report.latencies {
        let name = format!("{} p50 micros", latency.what);
        answer.append(&name, count_value(latency.p50.as_micros() as u64));
        let name = format!("{} p99 micros", latency.what);
        answer.append(&name, count_value(latency.p99.as_micros() as u64));
    }
    json(Value::from(&answer.build()))
}
