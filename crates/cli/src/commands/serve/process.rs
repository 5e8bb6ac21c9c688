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
/// Returns how many of `wanted` connections there may be: as with `mongod`, four fifths of the
/// files at most, so that the rest is left for the data's; says so if that is fewer.
pub fn allow_open_files(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    // Without it there is room for fewer.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let Some(files) = getrlimit(Resource::Nofile).current else { return wanted };
    let most = connections_within(files);
    if most < wanted {
        print(format_args!(
            "frond: the process may open {files} files: at most {most} connections, not {wanted} \
             (ulimit -n, or systemd's LimitNOFILE=, allows more)"
        ));
    }
    wanted.min(most)
}

/// Returns how many connections leave enough of so many files to others.
fn connections_within(files: u64) -> usize {
    usize::try_from(files / 5 * 4).unwrap_or(usize::MAX).max(1)
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
