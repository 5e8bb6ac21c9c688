//! Hooks of the repository: what runs before and after a commit, a merge and a push.
//!
//! A hook is a file in the directory `hooks` of the data directory, called as git calls it:
//! `pre-commit`, `post-commit`, `pre-merge`, `post-merge`, `pre-push`, `post-push`. It runs in the
//! process that does the work, as the user that the process is.
//!
//! 1. A file that may be executed is run, with what it is about on its standard input, one line of
//!    JSON, and in its environment. A file `NAME.url` names an address to which the same is sent
//!    (`http` only).
//! 2. A hook that runs before may refuse: another exit code than 0, another status than 2xx. So
//!    does what can't be run, or takes longer than [`TIME_MAX`]: it is ended then, and so it is
//!    when its command has no time left, is killed or stopped. A hook that runs after only reports.
//! 3. Only users who may write to the directory set hooks; no command does. A file that others may
//!    write to is refused, and is another's.
//! 4. Text that a client sends never becomes a word of a command line.
//!
//! A commit is made before its hook is asked, under an id that no branch has: the hook is given
//! that to read, and what the branch moves to is that commit, whatever was written meanwhile. Of a
//! merge it is given the commit that comes in; just that is merged, or nothing.
//!
//! Commits by policy, and what is pushed here from elsewhere, run none.

mod address;
mod command;

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use frond_db::{Error, Interrupt};
use frond_doc::extended_json::{self, Form};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

/// The time that a hook may take.
pub const TIME_MAX: Duration = Duration::from_secs(30);
/// What is read of what a hook says.
const MESSAGE_BYTES_MAX: u64 = 4 << 10;
/// Bits of a file's mode by which others than its owner write to it.
const WRITTEN_BY_OTHERS: u32 = 0o022;
const EXECUTABLE: u32 = 0o100;

/// The action that a hook is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// A commit.
    Commit,
    /// A merge.
    Merge,
    /// A push to a remote.
    Push,
}

/// The hooks of a data directory.
#[derive(Clone, Default, Debug)]
pub struct Hooks {
    directory: Option<PathBuf>,
}

/// The failure of a hook.
#[derive(Debug)]
pub(crate) enum HookFailure {
    /// It refuses, couldn't be run or took too long: the reason.
    Refused(String),
    /// The command that it is run for must stop.
    Interrupted(Error),
}

impl From<String> for HookFailure {
    fn from(what: String) -> HookFailure {
        HookFailure::Refused(what)
    }
}

/// The event that a hook is run for: the action, the database and the user.
#[derive(Clone, Debug)]
pub struct HookEvent<'a> {
    /// The action.
    pub act: Act,
    /// The database's name, as the client has it.
    pub database: &'a str,
    /// The user; empty where clients don't log in.
    pub user: String,
    /// Further facts for hooks, in their order. Empty ones are left out.
    pub facts: Vec<(&'static str, String)>,
    /// Ends the hook.
    pub interrupt: Interrupt,
}

impl Act {
    fn name(self) -> &'static str {
        match self {
            Act::Commit => "commit",
            Act::Merge => "merge",
            Act::Push => "push",
        }
    }
}

impl Hooks {
    /// Those of the directory `hooks` in `data`.
    pub fn of(data: &Path) -> Hooks {
        Hooks { directory: Some(data.join("hooks")) }
    }

    /// Whether something is asked before such an act: if only because it can't be known.
    pub fn judge(&self, act: Act) -> bool {
        let Some(directory) = &self.directory else { return false };
        let name = format!("pre-{}", act.name());
        let is_there = |file: &Path| check(directory, file) != Ok(false);
        is_there(&directory.join(&name)) || is_there(&directory.join(format!("{name}.url")))
    }

    /// Asks whether something may be done.
    ///
    /// # Errors
    /// `OperationFailed` (96) with what the hook said; what the event's interrupt says.
    pub fn before(&self, occasion: &HookEvent<'_>) -> Result<(), Error> {
        let name = format!("pre-{}", occasion.act.name());
        self.run(&name, occasion).map_err(|failure| match failure {
            HookFailure::Interrupted(error) => error,
            HookFailure::Refused(what) => {
                Error::invalid(Code::OperationFailed, format!("the hook {name} refuses: {what}"))
            }
        })
    }

    /// Reports that something was done; `answer` gets `hookFailed` where that fails.
    pub fn after(&self, occasion: &HookEvent<'_>, answer: &mut DocumentBuilder) {
        let name = format!("post-{}", occasion.act.name());
        let what = match self.run(&name, occasion) {
            Ok(()) => return,
            Err(HookFailure::Refused(what)) => what,
            Err(HookFailure::Interrupted(error)) => error.to_string(),
        };
        answer.append("hookFailed", Value::String(&format!("{name}: {what}")));
    }

    fn run(&self, name: &str, occasion: &HookEvent<'_>) -> Result<(), HookFailure> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let file = directory.join(name);
        let url = directory.join(format!("{name}.url"));
        let (is_command, is_url) = (check(directory, &file)?, check(directory, &url)?);
        if !is_command && !is_url {
            return Ok(());
        }
        let description = occasion.described(name);
        let interrupt = &occasion.interrupt;
        if is_command {
            command::run((&file, name), &description, TIME_MAX, interrupt)?;
        }
        if is_url {
            let address = fs::read_to_string(&url).map_err(|error| shown(&url, &error))?;
            address::send(address.trim(), line_of(&description), TIME_MAX, interrupt)?;
        }
        Ok(())
    }
}

impl HookEvent<'_> {
    fn described(&self, name: &str) -> DocumentBuf {
        let mut description = DocumentBuilder::new();
        description.append("hook", Value::String(name));
        description.append("database", Value::String(self.database));
        let user = [("user", self.user.clone())];
        for (fact, value) in user.iter().chain(&self.facts).filter(|(_, value)| !value.is_empty()) {
            description.append(fact, Value::String(value));
        }
        description.build()
    }
}

/// Whether a hook is there; says why it isn't run, if it may be another's.
fn check(directory: &Path, file: &Path) -> Result<bool, String> {
    let found = match fs::metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A hook that is a link was meant to be run.
            let is_link = fs::symlink_metadata(file).is_ok();
            let leads_nowhere = || format!("{}: the link leads nowhere", file.display());
            return if is_link { Err(leads_nowhere()) } else { Ok(false) };
        }
        Err(error) => return Err(shown(file, &error)),
    };
    // To read a pipe is to wait for its writer.
    if !found.is_file() {
        return Err(format!("{} is not a file", file.display()));
    }
    let parent = fs::metadata(directory).map_err(|error| shown(directory, &error))?;
    if is_of_others(&parent) || is_of_others(&found) {
        return Err(format!("{} may be written to by others", file.display()));
    }
    let is_url = file.extension().is_some_and(|extension| extension == "url");
    // As git: what isn't executable is off.
    Ok(is_url || found.mode() & EXECUTABLE != 0)
}

fn is_of_others(found: &Metadata) -> bool {
    let me = rustix::process::geteuid().as_raw();
    found.mode() & WRITTEN_BY_OTHERS != 0 || ![me, 0].contains(&found.uid())
}

fn shown(file: &Path, error: &io::Error) -> String {
    format!("{}: {error}", file.display())
}

fn line_of(facts: &DocumentBuf) -> String {
    let mut line = String::new();
    extended_json::write(facts.view(), Form::Relaxed, &mut line);
    line.push('\n');
    line
}
