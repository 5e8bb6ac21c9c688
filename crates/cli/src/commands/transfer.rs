//! The common parts of commands that talk to a remote: its address, the user's name there, and how
//! much has moved.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use frond_db::Error;
use frond_doc::{Document, DocumentBuilder};
use frond_remote::{HttpOptions, RemoteUrl};
use frond_vcs::Repository;
use frond_vcs::remote::{Moved, Remote};
use indicatif::{ProgressBar, ProgressStyle};

use crate::backend::is_in_use;
use crate::failure::{Failure, describe};
use crate::output::{bytes, count_of, count_value, counted, grouped};
use crate::text_file;

/// Holds a token for servers that ask for one.
const TOKEN_VARIABLE: &str = "FROND_REMOTE_TOKEN";

/// How to talk to a running server.
#[derive(Args, Clone, Debug)]
pub struct Connection {
    /// File with the token for an http(s):// remote; by default FROND_REMOTE_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// File of certificates (PEM) to trust for an https:// remote, besides the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl Connection {
    /// Returns the options from the arguments and the environment.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the token's file can't be read or is empty.
    pub fn options(&self) -> Result<HttpOptions, Failure> {
        let token = match &self.token_file {
            Some(file) => {
                let name = file.display().to_string();
                let text = text_file::read(file);
                let text = text.map_err(|error| Failure::file(&name, &error))?;
                let token = text.split_whitespace().next().map(str::to_owned);
                Some(token.ok_or_else(|| Failure::failed(format!("{name} holds no token")))?)
            }
            None => std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()),
        };
        Ok(HttpOptions { token, authorities: self.ca_file.clone(), ..HttpOptions::default() })
    }

    /// Opens the remote `name` of `database`.
    ///
    /// # Errors
    /// [`Failure::Failed`] if there is no such remote; as [`Connection::open`].
    pub fn open_named(
        &self,
        name: &str,
        database: &Repository,
    ) -> Result<Box<dyn Remote>, Failure> {
        self.open(&database.remote_url(name).map_err(failure)?, database)
    }

    /// As [`Connection::open_named`], to read from it.
    ///
    /// # Errors
    /// As [`Connection::open_named`]; [`Failure::Failed`] if its directory isn't there.
    pub fn open_to_read(
        &self,
        name: &str,
        database: &Repository,
    ) -> Result<Box<dyn Remote>, Failure> {
        check_place(&database.remote_url(name).map_err(failure)?)?;
        self.open_named(name, database)
    }

    /// Opens the repository at `place`, for `database`.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the place doesn't answer, or is in use by another process.
    pub fn open(&self, place: &str, database: &Repository) -> Result<Box<dyn Remote>, Failure> {
        let opened = frond_remote::open(place, &database.name().name, &self.options()?);
        opened.map_err(|error| {
            let message = &error.message;
            if is_in_use(&error) {
                return Failure::failed(format!(
                    "{place} is in use by another process: if a server runs on it, have that serve \
                     it (frond serve --remote-listen HOST:PORT) and use http://HOST:PORT/DATABASE"
                ));
            }
            match message.starts_with(place) {
                true => Failure::failed(message),
                false => Failure::failed(format!("{place}: {message}")),
            }
        })
    }
}

/// The text of the file `file`, which `serve` or another command was told to use.
///
/// # Errors
/// [`Failure::Failed`] with the file's name and what the system says.
pub fn read_text(file: &Path) -> Result<String, Failure> {
    text_file::read(file)
        .map_err(|error| Failure::failed(format!("{}: {}", file.display(), describe(&error))))
}

/// The place with its directory made absolute, so that it is found from anywhere.
///
/// # Errors
/// [`Failure::Failed`] if no remote can have that form.
pub fn absolute(place: &str) -> Result<String, Failure> {
    let RemoteUrl::Directory(place) = RemoteUrl::parse(place).map_err(failure)? else {
        return Ok(place.to_owned());
    };
    let (directory, database) = match place.rsplit_once('#') {
        Some((directory, database)) => (directory, Some(database)),
        None => (place.as_str(), None),
    };
    let directory = std::path::absolute(Path::new(directory)).unwrap_or_else(|_| directory.into());
    Ok(match database {
        Some(database) => format!("{}#{database}", directory.display()),
        None => directory.display().to_string(),
    })
}

/// Refuses a directory that isn't there: opening it to write would make it.
///
/// # Errors
/// [`Failure::Failed`] then, and if no remote can have that form.
pub fn check_place(place: &str) -> Result<(), Failure> {
    let RemoteUrl::Directory(place) = RemoteUrl::parse(place).map_err(failure)? else {
        return Ok(());
    };
    let directory = place.rsplit_once('#').map_or(place.as_str(), |(directory, _)| directory);
    if Path::new(directory).is_dir() {
        return Ok(());
    }
    Err(Failure::failed(format!("there is no directory {directory}")))
}

/// Returns the failure for an error of the database.
pub fn failure(error: Error) -> Failure {
    Failure::failed(error.message)
}

/// How much has moved, in words, as a report has it.
pub fn moved_text(report: Document<'_>) -> String {
    format!(
        "{}, {}, {}",
        counted(count_of(report, "commits"), "commit"),
        counted(count_of(report, "chunks"), "chunk"),
        bytes(count_of(report, "bytes"))
    )
}

/// Appends how much has moved to a report.
pub fn append_moved(report: &mut DocumentBuilder, moved: &Moved) {
    report.append("commits", count_value(moved.commits));
    report.append("chunks", count_value(moved.chunks));
    report.append("bytes", count_value(moved.bytes));
}

const TICK: Duration = Duration::from_millis(100);
/// Before so much time a rate says little.
const RATE_AFTER: Duration = Duration::from_secs(1);
const SPINNER: &str = "{spinner} {msg}";
const BAR: &str = "{bar:15.green} {msg}";

/// A line that shows how much has moved; only on a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// Shows nothing yet.
    pub fn new() -> Progress {
        let bar = ProgressBar::new_spinner();
        bar.set_style(style_of(SPINNER));
        if !bar.is_hidden() {
            // What a place does with what it got takes time, too.
            bar.enable_steady_tick(TICK);
        }
        Progress(bar)
    }

    /// Whether there is no terminal that shows it.
    pub fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// Shows how much has moved, and how much of what is known of.
    pub fn show(&self, moved: &Moved) {
        if self.0.length().is_none() && 1 < moved.found {
            self.0.set_style(style_of(BAR));
        }
        if 1 < moved.found {
            self.0.set_length(moved.found);
            self.0.set_position(moved.looked_at());
        }
        self.0.set_message(shown(moved, self.0.elapsed()));
        self.0.tick();
    }

    /// Shows how many chunks were looked at.
    pub fn look(&self, chunks: u64) {
        self.0.set_message(format!("{} chunks", grouped(chunks)));
        self.0.tick();
    }

    /// All.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    /// A failure is printed where the line was.
    fn drop(&mut self) {
        self.end();
    }
}

fn style_of(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant")
}

/// What has moved in so much time, in words.
fn shown(moved: &Moved, elapsed: Duration) -> String {
    let mut text = String::new();
    if 0 < moved.commits {
        text = format!("{} of {} commits, ", grouped(moved.commits_done), grouped(moved.commits));
    }
    let done = moved.looked_at();
    text.push_str(&grouped(done));
    if done < moved.found {
        text.push_str(&format!(" of {}", grouped(moved.found)));
    }
    text.push_str(&format!(" chunks, {}", bytes(moved.bytes)));
    if RATE_AFTER <= elapsed {
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let rate = u128::from(moved.bytes) * 1_000 / u128::from(millis);
        text.push_str(&format!(", {}/s", bytes(u64::try_from(rate).unwrap_or(u64::MAX))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_moved_is_said_in_words() {
        let begun = Moved { found: 1, ..Moved::default() };
        let amid = Moved {
            commits: 1_237,
            commits_done: 64,
            chunks: 4_100,
            known: 221,
            found: 9_020,
            bytes: 12_345_678,
        };
        let done = Moved { commits_done: 1_237, chunks: 8_800, known: 220, ..amid };
        let cases = [
            (begun, 0, "0 of 1 chunks, 0 B"),
            (amid, 999, "64 of 1,237 commits, 4,321 of 9,020 chunks, 12.3 MB"),
            (amid, 3_000, "64 of 1,237 commits, 4,321 of 9,020 chunks, 12.3 MB, 4.1 MB/s"),
            (done, 999, "1,237 of 1,237 commits, 9,020 chunks, 12.3 MB"),
        ];
        for (moved, millis, expected) in cases {
            assert_eq!(shown(&moved, Duration::from_millis(millis)), expected);
        }
    }
}
