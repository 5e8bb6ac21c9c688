//! `frond doctor --store`: whether a bucket can be relied on, and how fast it is.

use std::io::Write;
use std::time::Duration;

use frond_doc::{DocumentBuilder, Value};
use frond_remote::store_probe::{StoreReport, probe};
use frond_remote::tiered::{Pin, PinState, pins_at, remove_pin_at};

use crate::commands::transfer::failure;
use crate::failure::Failure;
use crate::output::{count_value, counted, json};
use crate::terminal::Terminal;

/// Microseconds of a day.
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// A clone that is served renews its pin each three hours.
const SILENT_MICROS: i64 = DAY_MICROS;

/// Probes the store and reports what was found.
///
/// # Errors
/// [`Failure::Failed`], with JSON [`Failure::Reported`], if it can't be relied on.
pub fn look_at(terminal: &mut Terminal, store: &str, as_json: bool) -> Result<(), Failure> {
    let report = probe(store).map_err(failure)?;
    let pins = pins_at(store).map_err(failure)?;
    if as_json {
        writeln!(terminal, "{}", as_document(&report))?;
        for pin in &pins {
            writeln!(terminal, "{}", pin_document(pin))?;
        }
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
    let now_micros = jiff::Timestamp::now().as_microsecond();
    for pin in &pins {
        writeln!(terminal, "{}", pin_line(pin, now_micros))?;
    }
    Ok(())
}

/// Removes a pin, and says so.
///
/// # Errors
/// [`Failure::Failed`] if there is none of this id, or the store doesn't answer.
pub fn remove_pin(terminal: &mut Terminal, store: &str, id: &str) -> Result<(), Failure> {
    if !remove_pin_at(store, id).map_err(failure)? {
        return Err(Failure::failed(format!("{store} has no pin {id}")));
    }
    writeln!(terminal, "pin {id} is removed: the next garbage collections remove what it kept")?;
    Ok(())
}

/// What is to be said of a pin.
fn pin_line(pin: &Pin, now_micros: i64) -> String {
    let days = |micros: i64| counted((micros.max(0) / DAY_MICROS).unsigned_abs(), "day");
    let objects = counted(pin.objects as u64, "object");
    let Pin { id, place, .. } = pin;
    let lease = days(pin.lease_micros);
    let let_go = match pin.lease_micros {
        i64::MAX => String::new(),
        _ => format!(" (it is let go after {lease})"),
    };
    match pin.state {
        PinState::Counts => {}
        PinState::LetGo => {
            return format!(
                "warning: pin {id} of {place}: let go, as it wasn't renewed for {lease}; {objects} \
                 aren't kept any more. Its clone gets another when it is started; if that is gone: \
                 --remove-pin {id}"
            );
        }
        PinState::Unlisted => {
            return format!("pin {id} of {place}: keeps nothing: --remove-pin {id}");
        }
    }
    let used = match pin.is_used {
        Some(true) => "relied on".to_owned(),
        Some(false) => format!("no clone there relies on it: --remove-pin {id}"),
        None => "whether a clone relies on it can't be found out".to_owned(),
    };
    let old = days(now_micros.saturating_sub(pin.since_micros));
    let line = format!("pin {id} of {place}: {objects}, {old} old, {used}");
    match pin.silent_micros {
        ..SILENT_MICROS => line,
        silent => format!(
            "warning: {line}; not renewed for {}{let_go}: start its clone, or remove the pin if that \
             is gone",
            days(silent)
        ),
    }
}

fn pin_document(pin: &Pin) -> String {
    let mut answer = DocumentBuilder::new();
    answer.append("pin", Value::String(&pin.id));
    answer.append("place", Value::String(&pin.place));
    answer.append("since", Value::DateTime(pin.since_micros / 1000));
    answer.append("objects", count_value(pin.objects as u64));
    let state = match pin.state {
        PinState::Counts => "counts",
        PinState::LetGo => "let go",
        PinState::Unlisted => "unlisted",
    };
    answer.append("state", Value::String(state));
    if pin.lease_micros != i64::MAX {
        answer.append("leaseDays", count_value((pin.lease_micros / DAY_MICROS).unsigned_abs()));
    }
    answer.append("silentDays", count_value((pin.silent_micros / DAY_MICROS).unsigned_abs()));
    if let Some(is_used) = pin.is_used {
        answer.append("used", Value::Boolean(is_used));
    }
    json(Value::from(&answer.build()))
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
