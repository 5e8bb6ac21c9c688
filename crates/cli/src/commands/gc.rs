//! `frond gc`: gives back the disk space of what is no longer needed.

use std::io::Write;

use frond_doc::{Document, DocumentBuilder, Value};

use crate::arguments::{Answer, Target};
use crate::commands::transfer::{Progress, absolute, check_place, failure};
use crate::failure::Failure;
use crate::output::{bytes, count_of, count_value, counted, date};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond gc                              a data directory that no server uses
  frond gc --uri 127.0.0.1:27017        a running server, while it serves
  frond gc --uri 127.0.0.1:27017 --rate 20    at most 20 MB a second
  frond gc --undo-days 0                what was dropped can no longer be brought back
  frond gc --place /backup/shop         a plain remote or a place of backups; also a bucket

Removes what no branch, tag, commit, cursor or transaction can reach. What was dropped, deleted or \
replaced stays for 14 days, unless --undo-days says otherwise. History is packed so that versions of \
the same data share their bytes. \
A server also collects by itself, without packing, when half of its disk may be garbage.";

const SECONDS_A_DAY: i64 = 24 * 3600;

/// Free disk space
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Gc {
    /// Remove garbage only; don't pack history
    #[arg(long)]
    quick: bool,

    /// Rewrite every pack, so that no garbage stays on the disk (after frond erase)
    #[arg(long, conflicts_with = "quick")]
    purge: bool,

    /// For how many days what was dropped, deleted or replaced can be brought back (frond undo)
    #[arg(long, value_name = "DAYS", default_value_t = 14)]
    #[arg(value_parser = clap::value_parser!(i64).range(0..=36_500))]
    undo_days: i64,

    /// Megabytes to read and write per second at most; by default, as fast as possible
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    rate: Option<i64>,

    /// Directory or bucket (s3://, az://, gs://) of a plain remote or of backups, to collect
    /// instead: deletes what interrupted pushes left behind and only removed backups needed. A push
    /// that runs at the same time is refused at its end
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["quick", "rate", "uri"])]
    place: Option<String>,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Gc {
    /// Collects.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if something reachable can't be read.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if let Some(place) = &self.place {
            return collect_place(terminal, place, self.as_json);
        }
        let mut command = DocumentBuilder::new();
        command
            .append("frondGc", Value::Int32(1))
            .append("quick", Value::Boolean(self.quick))
            .append("purge", Value::Boolean(self.purge))
            .append("undoSeconds", Value::Int64(self.undo_days * SECONDS_A_DAY));
        if let Some(rate) = self.rate {
            command.append("bytesPerSecond", Value::Int64(rate.saturating_mul(1_000_000)));
        }
        let mut backend = self.target.open()?;
        let answer = backend.execute("admin", &command.build())?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        let answer = answer.view();
        let (before, after) = (count_of(answer, "bytesBefore"), count_of(answer, "bytesAfter"));
        let now = terminal.paint(Style::Added, bytes(after));
        writeln!(terminal, "{} before, {now} now", bytes(before))?;
        if let Some(kept) = answer.get("kept").and_then(|kept| kept.as_document()) {
            self.print_kept(terminal, kept)?;
        }
        backend.close()
    }

    /// Prints what was not given back, since it can be undone.
    fn print_kept(&self, terminal: &mut Terminal, kept: Document<'_>) -> Result<(), Failure> {
        if let Some(clock) = kept.get("clock").and_then(|clock| clock.as_str()) {
            writeln!(terminal, "nothing was forgotten: {clock}")?;
        }
        let (collections, size) = (count_of(kept, "collections"), count_of(kept, "bytes"));
        if collections == 0 {
            return Ok(());
        }
        let day = |name: &str| match kept.get(name) {
            Some(Value::DateTime(millis)) => date(millis),
            _ => String::new(),
        };
        let databases = match count_of(kept, "databases") {
            0 => String::new(),
            count => format!(" (and {})", counted(count, "database")),
        };
        writeln!(
            terminal,
            "kept so that it can be undone: {}{databases}, {} uncompressed, dropped or replaced in the \
             last {}; it is freed from {} to {}",
            counted(collections, "collection"),
            bytes(size),
            counted(self.undo_days.unsigned_abs(), "day"),
            day("from"),
            day("until"),
        )?;
        writeln!(
            terminal,
            "frond gc --undo-days 0 frees it now; frond undo can't bring it back after that"
        )?;
        Ok(())
    }
}

fn collect_place(terminal: &mut Terminal, place: &str, as_json: Answer) -> Result<(), Failure> {
    let place = absolute(place)?;
    check_place(&place)?;
    let remote = frond_remote::open_plain(&place).map_err(failure)?;
    let progress = Progress::new();
    let done = remote.reclaim(&mut |chunks| progress.look(chunks)).map_err(failure)?;
    progress.end();
    let mut answer = DocumentBuilder::new();
    answer.append("bytesBefore", count_value(done.bytes_before));
    answer.append("bytesAfter", count_value(done.bytes_after));
    if as_json.print(terminal, &answer.build())? {
        return Ok(());
    }
    let now = terminal.paint(Style::Added, bytes(done.bytes_after));
    writeln!(terminal, "{} before, {now} now", bytes(done.bytes_before))?;
    Ok(())
}
