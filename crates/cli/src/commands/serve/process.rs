//! The process that serves: its limits, its program, and that program once more.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::notice::print;

/// Asks for as many open files as the process may have: each connection takes one, and each cursor
/// that waits with what it sorted. Shells and service managers allow about a thousand unless asked.
pub fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Without it there is room for fewer, as `frond doctor` says.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Returns the path of the running program, also where another version took the place of its file.
pub(super) fn own_program() -> Option<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Some(running) } else { std::env::current_exe().ok() }
}

/// Begins the process anew with these arguments, the program's name first, and a variable more in
/// its environment. Returns only if it can't.
pub(super) fn begin_with(arguments: &[OsString], variable: Option<(&str, &OsStr)>) -> io::Error {
    let again = |program: &Path| {
        let mut words = arguments.iter();
        // A link that is called mongod takes mongod's arguments.
        let name = words.next().cloned().unwrap_or_default();
        Command::new(program).arg0(name).args(words).envs(variable).exec()
    };
    let error = std::env::current_exe().map_or_else(|error| error, |program| again(&program));
    // Another version took the place of its file, perhaps; the process still has its own.
    match error.kind() {
        io::ErrorKind::NotFound => again(Path::new("/proc/self/exe")),
        _ => error,
    }
}

/// Begins the process anew, as it was started: nothing of what it had in memory stays, and all that
/// it had open is closed.
pub(super) fn begin_anew() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let error = begin_with(&arguments, None);
    print(format_args!("frond: can't restart: {error}"));
    std::process::exit(1);
}
