//! `frond backup`, and `frond restore --backup`: a whole data directory, at one moment, elsewhere.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_remote::{HttpImage, RemoteUrl};
use frond_vcs::PartRequest;
use frond_vcs::remote::{
    BackupInfo, BackupReport, DataImage, ImageSource, PlaceReport, PlainRemote, Remote as _,
    Reread, RestoreRequest, StorageDamage, StoragePart,
};

use crate::arguments::{Answer, server_of};
use crate::backend::{Backend, Embedded, Remote, STOP_IT, is_in_use, open_failure};
use crate::commands::salvage;
use crate::commands::transfer::{
    Connection, Progress, absolute, append_moved, check_place, failure,
};
use crate::directory::{check_there, check_usable};
use crate::failure::Failure;
use crate::notice::print;
use crate::output::{append_texts, bytes, count_value, counted, json, moment, plain, text_of};
use crate::terminal::{Style, Terminal};

/// The number of damages that are shown; the rest is counted.
const SHOWN_MAX: usize = 20;

const BACKUP_EXAMPLES: &str = "\
Examples:
  frond backup /mnt/backup                          the data directory ./frond-data
  frond backup s3://bucket/frond --from https://db.example.org:4224 --token-file token
                                                    a running server, while it serves
  frond backup s3://bucket/frond --uri 127.0.0.1:27017 --token-file token    the same, by the port that drivers use
  frond backup /mnt/backup --list
  frond backup /mnt/backup --verify                 read everything there
  frond backup /mnt/backup --remove 2026-11-02T03:00:00Z

A backup holds everything at one moment: all databases with their branches, tags and uncommitted \
changes, and what isn't versioned. Only what the place lacks is transferred. If a backup \
is interrupted, what has arrived stays: run it again, and it continues. `frond gc --place PLACE` frees the \
space that only removed backups needed. `frond restore --backup PLACE --data DIR` restores \
the newest one.

What is already in the place is checked: each backup rereads a share of it (a sixteenth, 128 MB at least; all \
of it with --reread-all), and the chunks that it relies on. Damaged chunks are transferred again. Exit codes:
  0   the backup is whole, and nothing was found damaged
  3   the backup is whole; damage was found in the place, and all of it was repaired
  1   part of this backup (the data directory is damaged) or of an earlier one is lost; the output lists what";
/// Back up a data directory or a running server to a directory or bucket
#[derive(Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct Backup {
    /// Directory or bucket (s3://, az:// or gs://BUCKET/PREFIX) that holds the backups
    place: String,

    /// Data directory to copy; no server may be using it
    #[arg(long, value_name = "DIR", default_value = "./frond-data", conflicts_with_all = ["from", "uri"])]
    data: PathBuf,

    /// Running server to copy instead: http(s)://HOST:PORT, as frond serve --remote-listen prints
    /// it
    #[arg(long, value_name = "URL")]
    from: Option<String>,

    /// The same server, by the address that drivers use, HOST:PORT; it answers where its remotes
    /// are served
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["from", "list", "verify", "remove"])]
    uri: Option<String>,

    /// The backup's name; by default the current time
    #[arg(long)]
    name: Option<String>,

    /// List the backups in the place instead
    #[arg(long, conflicts_with_all = ["name", "remove"])]
    list: bool,

    /// Read everything in the place instead, and report which backups are intact; with --name, only
    /// that one
    #[arg(long, conflicts_with_all = ["list", "remove"])]
    verify: bool,

    /// First reread everything in the place, not just a share of it
    #[arg(long, conflicts_with_all = ["list", "remove", "verify"])]
    reread_all: bool,

    /// Remove a backup from the place instead
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    remove: Option<String>,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    connection: Connection,
}

impl Backup {
    /// Does one of the four.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a name that doesn't go with the rest; [`Failure::Failed`] if the
    /// place or the directory can't be opened, read or written, or not all could be backed up or
    /// verified; [`Failure::Warned`] if the place was damaged and is whole again.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let place = absolute(&self.place)?;
        if self.list || self.verify || self.remove.is_some() {
            check_place(&place)?;
        } else if self.from.is_none() && self.uri.is_none() {
            check_there(&self.data, ": name one with --data")?;
        }
        // Opening makes the directory: not before there is something to put there.
        let open = || frond_remote::open_plain(&place).map_err(failure);
        if self.list {
            return list(terminal, &self.place, &open()?, self.as_json.is_set());
        }
        if self.verify {
            let output = (terminal, self.as_json);
            return verify(output, &self.place, &open()?, self.name.as_deref());
        }
        if let Some(name) = &self.remove {
            open()?.remove_backup(name).map_err(failure)?;
            if !self.as_json.print(terminal, &document! { "removed": name })? {
                writeln!(terminal, "removed backup {}", plain(name))?;
            }
            return Ok(());
        }
        let remotes = self.uri.as_deref().map(remotes_of).transpose()?;
        if let Some(from) = self.from.as_ref().or(remotes.as_ref()) {
            let RemoteUrl::Http(from) = RemoteUrl::parse(from).map_err(failure)? else {
                return Err(Failure::Usage(format!(
                    "--from {from}: http(s)://HOST:PORT is expected"
                )));
            };
            let image = HttpImage::take(&from, &self.connection.options()?).map_err(failure)?;
            return self.copy(terminal, &open()?, &image);
        }
        let opened = Embedded::open(&self.data, SERVED)?;
        let image = DataImage::take(opened.frond()).map_err(failure)?;
        let done = open().and_then(|place| self.copy(terminal, &place, &image));
        drop(image);
        let closed = Box::new(opened).close();
        done.and(closed)
    }

    fn copy(
        &self,
        terminal: &mut Terminal,
        place: &PlainRemote,
        image: &dyn ImageSource,
    ) -> Result<(), Failure> {
        let name = self.name.clone().unwrap_or_else(|| moment(image.time_millis()));
        let progress = Progress::new();
        let reread = if self.reread_all { Reread::All } else { Reread::Share };
        let done = place.back_up(&name, image, reread, &mut |moved| progress.show(moved));
        let report = done.map_err(failure)?;
        progress.end();
        if self.as_json.is_set() {
            let mut answer = described(&report.backup);
            append_moved(&mut answer, &report.moved);
            answer.append("mended", count_value(report.mended));
            append_texts(&mut answer, "damages", &texts_of(&report.damages));
            writeln!(terminal, "{}", json(Value::from(&answer.build())))?;
            terminal.finish()?;
            return self.judge(&report);
        }
        let name = terminal.paint(Style::Strong, plain(&report.backup.name));
        let databases = counted(report.backup.databases.len() as u64, "database");
        let (chunks, size) = (counted(report.moved.chunks, "chunk"), bytes(report.moved.bytes));
        writeln!(terminal, "backup {name}: {databases}; {chunks}, {size} moved")?;
        print_damages(terminal, &report.damages)?;
        for error in report.unread.iter().take(SHOWN_MAX) {
            writeln!(terminal, "  {}", terminal.paint(Style::Removed, plain(&error.message)))?;
        }
        terminal.finish()?;
        self.judge(&report)
    }

    /// Decides on the exit code and its reason.
    fn judge(&self, report: &BackupReport) -> Result<(), Failure> {
        let (place, name) = (&self.place, &report.backup.name);
        if !report.unread.is_empty() {
            let lost = counted(report.unread.len() as u64, "chunk");
            return Err(Failure::failed(format!(
                "backup {name} is incomplete: {lost} could not be read; the rest is saved, and \
                 the next backup adds what can be read by then (frond fsck)"
            )));
        }
        let mended = counted(report.mended, "chunk");
        if !report.gone.is_empty() {
            let gone = counted(report.gone.len() as u64, "chunk");
            return Err(Failure::failed(format!(
                "backup {name} is complete, but {place} was damaged: {mended} transferred again, \
                 {gone} of earlier backups lost; frond backup {place} --verify lists which"
            )));
        }
        if report.damages.iter().any(|damage| damage.may_hold_more) {
            return Err(Failure::failed(format!(
                "backup {name} is complete, but {place} was damaged, and it isn't known what \
                 earlier backups lack: frond backup {place} --verify reports it; if all are \
                 intact, frond gc --place {place} \
                 removes what is damaged"
            )));
        }
        if !report.damages.is_empty() || report.mended > 0 {
            return Err(Failure::Warned(format!(
                "{place} was damaged: {mended} transferred again, and all of it is intact now; \
                 check its disk"
            )));
        }
        Ok(())
    }
}

/// Prints what is damaged in a place, the first damages of it.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn print_damages(terminal: &mut Terminal, damages: &[StorageDamage]) -> Result<(), Failure> {
    for damage in damages.iter().take(SHOWN_MAX) {
        let what = terminal.paint(Style::Removed, plain(&damage.what));
        let chunks = match damage.chunks.len() {
            0 => String::new(),
            count => format!(": {}", counted(count as u64, "chunk")),
        };
        writeln!(terminal, "damaged: {what}{chunks}")?;
    }
    if SHOWN_MAX < damages.len() {
        writeln!(terminal, "  and {} more", damages.len() - SHOWN_MAX)?;
    }
    Ok(())
}

/// Reads everything in a place.
fn verify(
    (terminal, as_json): (&mut Terminal, Answer),
    place: &str,
    remote: &PlainRemote,
    name: Option<&str>,
) -> Result<(), Failure> {
    let progress = Progress::new();
    let report = remote.verify(name, &mut |chunks| progress.look(chunks)).map_err(failure)?;
    progress.end();
    if report.parts.is_empty() && report.damages.is_empty() {
        return Err(Failure::failed(format!("{place} holds no backup, no branch and no tag")));
    }
    let damaged = report.parts.iter().filter(|part| !part.lost.is_empty()).count();
    let is_whole = damaged == 0 && report.damages.is_empty();
    if as_json.print(terminal, &verified(&report, is_whole))? {
        return if is_whole { Ok(()) } else { Err(Failure::Reported) };
    }
    print_damages(terminal, &report.damages)?;
    for StoragePart { name, lost, lost_before, .. } in &report.parts {
        let strong = terminal.paint(Style::Strong, plain(name));
        if lost.is_empty() {
            writeln!(terminal, "{strong} is {}", terminal.paint(Style::Added, "whole"))?;
            continue;
        }
        let lost = terminal.paint(Style::Removed, counted(lost.len() as u64, "chunk"));
        let before = match *lost_before {
            0 => String::new(),
            count => format!(" ({} could not be read when it was made)", counted(count, "chunk")),
        };
        writeln!(terminal, "{strong} lacks {lost}{before}")?;
        if let Some(backup) = name.strip_prefix("backup ") {
            print_lacking(terminal, place, backup)?;
        }
    }
    let (chunks, size) = (counted(report.chunks, "chunk"), bytes(report.bytes));
    if is_whole {
        let whole = terminal.paint(Style::Added, "whole");
        writeln!(terminal, "{place} is {whole}: {chunks}, {size}")?;
        return Ok(());
    }
    terminal.finish()?;
    let parts = report.parts.len();
    let advice = match damaged {
        0 => "nothing is lost; the next backup, or frond gc --place, repairs it",
        _ => {
            "the next backup adds what the data directory still has; frond restore --backup \
             PLACE --partial --data NEWDIR restores what can be read of a damaged one"
        }
    };
    let message = format!("{place} is damaged: {damaged} of {parts} not whole, {advice}");
    Err(Failure::failed(message))
}

/// Returns the report on a place that was read, as a document.
fn verified(report: &PlaceReport, is_whole: bool) -> DocumentBuf {
    let mut answer = DocumentBuilder::new();
    answer.append("whole", Value::Boolean(is_whole));
    answer.append("chunks", count_value(report.chunks)).append("bytes", count_value(report.bytes));
    append_texts(&mut answer, "damages", &texts_of(&report.damages));
    answer.begin_array("parts");
    for StoragePart { name, lost, lost_before, .. } in &report.parts {
        answer.push_begin_document().append("name", Value::String(name));
        answer.append("chunksLacking", count_value(lost.len() as u64));
        answer.append("chunksLackingBefore", count_value(*lost_before)).end();
    }
    answer.end();
    answer.build()
}

fn texts_of(damages: &[StorageDamage]) -> Vec<String> {
    damages.iter().map(|damage| damage.what.clone()).collect()
}

/// Returns where the server at `uri` serves remotes, by its settings.
fn remotes_of(uri: &str) -> Result<String, Failure> {
    let server = server_of(uri)?;
    let command = document! { "getCmdLineOpts": 1_i32 };
    let answer = Remote::connect(&server)?.execute_with("admin", command.view(), Vec::new())?;
    let part = |parent: Document<'_>, name: &str| {
        let part = parent.get(name).and_then(|part| part.as_document());
        part.unwrap_or(Document::empty()).to_buf()
    };
    let frond = part(part(answer.view(), "parsed").view(), "frond");
    let listen = text_of(frond.view(), "remoteListen");
    let (host, port) = listen.rsplit_once(':').unwrap_or((listen, ""));
    let advice = "openssl rand -hex 32 > token, start it with --remote-listen 127.0.0.1:4224 \
                  --remote-token-file token, then back up with --token-file token";
    if port.is_empty() {
        // Not as it was given: there may be a password in it.
        let at = &server.address;
        return Err(Failure::failed(format!("the server at {at} serves no remotes: {advice}")));
    }
    if port == "0" {
        return Err(Failure::failed(
            "the server chose the port of its remotes itself and printed it when it started: \
             name it with --from http://HOST:PORT",
        ));
    }
    // One that listens everywhere is where it was asked.
    let address_host = server.address.rsplit_once(':').map_or("", |(host, _)| host);
    let host = if matches!(host, "0.0.0.0" | "[::]" | "") { address_host } else { host };
    let has_tls = frond.get("remoteTlsCert").is_some();
    Ok(format!("{}://{host}:{port}", if has_tls { "https" } else { "http" }))
}

/// A backup as a document.
fn described(backup: &BackupInfo) -> DocumentBuilder {
    let mut answer = DocumentBuilder::new();
    answer.append("name", Value::String(&backup.name));
    answer.append("time", Value::DateTime(backup.time_millis));
    append_texts(&mut answer, "databases", &backup.databases);
    answer.append("chunksLacking", count_value(backup.lost.len() as u64));
    answer
}

fn list(
    terminal: &mut Terminal,
    place: &str,
    remote: &PlainRemote,
    as_json: bool,
) -> Result<(), Failure> {
    let backups = remote.backups().map_err(failure)?;
    if backups.is_empty() {
        print(format_args!("{place} holds no backup"));
    }
    for backup in backups {
        if as_json {
            writeln!(terminal, "{}", json(Value::from(&described(&backup).build())))?;
            continue;
        }
        let BackupInfo { name, time_millis, databases, lost, .. } = backup;
        let strong = terminal.paint(Style::Strong, format!("{:<24}", plain(&name)));
        let time = moment(time_millis);
        let databases = databases.iter().map(|name| plain(name).to_string()).collect::<Vec<_>>();
        let lacks = match lost.len() {
            0 => String::new(),
            count => format!("  (lacks {})", counted(count as u64, "chunk")),
        };
        writeln!(terminal, "{strong} {time}  {}{lacks}", databases.join(", "))?;
    }
    Ok(())
}

/// Prints what a damaged backup lacks, by database and collection.
fn print_lacking(terminal: &mut Terminal, place: &str, backup: &str) -> Result<(), Failure> {
    let scratch = std::env::temp_dir().join(format!("frond-verify-{}", std::process::id()));
    let remote = frond_remote::open_plain(&absolute(place)?).map_err(failure)?;
    match frond_vcs::survey_backup(remote, backup, &scratch) {
        Ok(report) => salvage::print_lost(terminal, &report),
        Err(error) => {
            let what = terminal.paint(Style::Removed, plain(&error.message));
            writeln!(terminal, "  nothing of it can be restored: {what}")?;
            Ok(())
        }
    }
}

/// Makes `directory` a data directory as a backup at `place` has it.
///
/// # Errors
/// [`Failure::Failed`] if the directory isn't empty, or the backup can't be read.
pub fn restore(
    (terminal, as_json): (&mut Terminal, Answer),
    place: &str,
    request: &RestoreRequest,
    directory: &Path,
) -> Result<(), Failure> {
    let place = absolute(place)?;
    check_place(&place)?;
    let remote = frond_remote::open_plain(&place).map_err(failure)?;
    let progress = Progress::new();
    let report =
        remote.restore(request, directory, &mut |moved| progress.show(moved)).map_err(failure)?;
    progress.end();
    let mut answer = described(&report.backup);
    append_moved(&mut answer, &report.moved);
    answer.append("chunksLost", count_value(report.lost.len() as u64));
    let is_json = as_json.print(terminal, &answer.build())?;
    if is_json && report.lost.is_empty() {
        return Ok(());
    }
    let name = terminal.paint(Style::Strong, plain(&report.backup.name));
    let databases = counted(report.backup.databases.len() as u64, "database");
    let (chunks, size) = (counted(report.moved.chunks, "chunk"), bytes(report.moved.bytes));
    if report.lost.is_empty() {
        writeln!(terminal, "restored {name}: {databases}; {chunks}, {size} moved")?;
        return Ok(());
    }
    if !is_json {
        print_damages(terminal, &remote.damages())?;
        print_lacking(terminal, &place, &report.backup.name)?;
    }
    let (lost, data) = (counted(report.lost.len() as u64, "chunk"), directory.display());
    if report.is_there {
        if !is_json {
            writeln!(terminal, "restored a part of {name}: {chunks}, {size} moved")?;
        }
        terminal.finish()?;
        return Err(Failure::failed(format!(
            "{lost} of backup {} can't be read: what they hold is missing; frond salvage --data {data} \
             makes a directory without what refers to it",
            report.backup.name
        )));
    }
    terminal.finish()?;
    Err(Failure::failed(format!(
        "{lost} of backup {} can't be read; the rest lies in {data}: --partial, with --data NEWDIR, \
         makes a data directory of it; another backup may be whole (frond backup {place} --verify)",
        report.backup.name
    )))
}

/// The advice where a server runs on the data directory.
const SERVED: &str = "stop it first, or back it up while it serves: openssl rand -hex 32 > token, start it \
                      with --remote-listen 127.0.0.1:4224 --remote-token-file token, then frond backup \
                      PLACE --from http://127.0.0.1:4224 --token-file token";

/// Makes a database, or a collection, in `directory` what a backup at `place` has of it.
///
/// # Errors
/// [`Failure::Failed`] if the directory or the backup can't be opened, or the backup lacks what is
/// asked for.
pub fn restore_part(
    (terminal, as_json): (&mut Terminal, Answer),
    place: &str,
    request: &PartRequest,
    directory: &Path,
) -> Result<(), Failure> {
    let place = absolute(place)?;
    check_place(&place)?;
    check_usable(directory)?;
    let remote = frond_remote::open_plain(&place).map_err(failure)?;
    let report = frond_vcs::restore_part(remote, request, directory);
    let report = report.map_err(|error| match is_in_use(&error) {
        true => open_failure(directory, &error, STOP_IT),
        false => failure(error),
    })?;
    let is_json = as_json.print(terminal, &salvage::described(&report).build())?;
    if !is_json {
        salvage::print(terminal, &report)?;
    }
    let database = plain(&request.database);
    let what = match &request.collection {
        Some(collection) => format!("{database}.{}", plain(collection)),
        None => database,
    };
    if !is_json {
        writeln!(terminal, "restored {} into {}", what, directory.display())?;
    }
    terminal.finish()?;
    if report.is_whole() {
        return Ok(());
    }
    Err(Failure::failed(format!("not all of {what} could be read: {place} is damaged")))
}
