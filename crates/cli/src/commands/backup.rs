//! `frond backup`, and `frond restore --backup`: a whole data directory, at one moment, elsewhere.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use frond_db::version::remote::{BackupInfo, DataImage, ImageSource, PlainRemote};
use frond_remote::{HttpImage, PlaceUrl};

use crate::backend::{Backend, Embedded};
use crate::commands::transfer::{Connection, Progress, absolute, check_place, failure};
use crate::directory::check_there;
use crate::failure::Failure;
use crate::output::{bytes, counted, moment, plain};
use crate::terminal::{Style, Terminal};

const BACKUP_EXAMPLES: &str = "\
Examples:
  frond backup /mnt/backup                          the data directory ./frond-data
  frond backup s3://bucket/frond --from https://db.example.org:4224 --token-file token
                                                    a running server, while it serves
  frond backup /mnt/backup --list
  frond backup /mnt/backup --remove 2026-11-02T03:00:00Z

A backup holds everything at one moment: all databases with their branches, tags and changes that are
not committed, and what isn't versioned. Only what the place lacks moves. What a cut backup brought stays:
run it again, and it goes on. `frond gc --place PLACE` gives back what removed backups\nalone needed. `frond restore --backup PLACE --data DIR` makes a data directory of the last one.";
/// Copy a whole data directory, or a running server's, to a directory or bucket
#[derive(Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct Backup {
    /// Directory or s3://BUCKET/PREFIX that holds the backups
    place: String,

    /// Data directory to copy; no server may be using it
    #[arg(long, value_name = "DIR", default_value = "./frond-data", conflicts_with = "from")]
    data: PathBuf,

    /// Running server to copy instead: http(s)://HOST:PORT, as frond serve --remote-listen tells it
    #[arg(long, value_name = "URL")]
    from: Option<String>,

    /// What to call it; otherwise the moment
    #[arg(long)]
    name: Option<String>,

    /// List the backups there instead
    #[arg(long, conflicts_with_all = ["name", "remove"])]
    list: bool,

    /// Forget a backup there instead
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    remove: Option<String>,

    #[command(flatten)]
    connection: Connection,
}

impl Backup {
    /// Does one of the three.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let place = absolute(&self.place)?;
        if self.list || self.remove.is_some() {
            check_place(&place)?;
        } else if self.from.is_none() {
            check_there(&self.data, ": name one with --data")?;
        }
        let plain_remote = frond_remote::open_plain(&place).map_err(failure)?;
        if self.list {
            return list(terminal, &plain_remote);
        }
        if let Some(name) = &self.remove {
            plain_remote.remove_backup(name).map_err(failure)?;
            writeln!(terminal, "removed backup {}", plain(name))?;
            return Ok(());
        }
        if let Some(from) = &self.from {
            let PlaceUrl::Http(from) = PlaceUrl::parse(from).map_err(failure)? else {
                return Err(Failure::Usage(format!(
                    "--from {from}: http(s)://HOST:PORT is expected"
                )));
            };
            let image = HttpImage::take(&from, &self.connection.options()?).map_err(failure)?;
            return self.copy(terminal, &plain_remote, &image);
        }
        let opened = Embedded::open(&self.data)?;
        let image = DataImage::take(opened.frond()).map_err(failure)?;
        self.copy(terminal, &plain_remote, &image)?;
        drop(image);
        Box::new(opened).close()
    }

    fn copy(
        &self,
        terminal: &mut Terminal,
        place: &PlainRemote,
        image: &dyn ImageSource,
    ) -> Result<(), Failure> {
        let name = self.name.clone().unwrap_or_else(|| moment(image.time_millis()));
        let progress = Progress::new();
        let done = place.back_up(&name, image, &mut |moved| progress.show(moved));
        let (backup, moved) = done.map_err(failure)?;
        progress.end();
        let name = terminal.paint(Style::Strong, plain(&backup.name));
        let databases = counted(backup.databases.len() as u64, "database");
        let (chunks, size) = (counted(moved.chunks, "chunk"), bytes(moved.bytes));
        writeln!(terminal, "backup {name}: {databases}; {chunks}, {size} moved")?;
        Ok(())
    }
}

fn list(terminal: &mut Terminal, place: &PlainRemote) -> Result<(), Failure> {
    for BackupInfo { name, time_millis, databases, .. } in place.backups().map_err(failure)? {
        let strong = terminal.paint(Style::Strong, format!("{:<24}", plain(&name)));
        let time = moment(time_millis);
        let databases = databases.iter().map(|name| plain(name).to_string()).collect::<Vec<_>>();
        writeln!(terminal, "{strong} {time}  {}", databases.join(", "))?;
    }
    Ok(())
}

/// Makes `directory` a data directory as the backup `name` (otherwise the last) at `place` has it.
pub fn restore(
    terminal: &mut Terminal,
    place: &str,
    name: Option<&str>,
    directory: &Path,
) -> Result<(), Failure> {
    let place = absolute(place)?;
    check_place(&place)?;
    let place = frond_remote::open_plain(&place).map_err(failure)?;
    let progress = Progress::new();
    let report =
        place.restore(name, directory, &mut |moved| progress.show(moved)).map_err(failure)?;
    progress.end();
    let name = terminal.paint(Style::Strong, plain(&report.backup.name));
    let databases = counted(report.backup.databases.len() as u64, "database");
    let (chunks, size) = (counted(report.moved.chunks, "chunk"), bytes(report.moved.bytes));
    writeln!(terminal, "restored {name}: {databases}; {chunks}, {size} moved")?;
    Ok(())
}
