//! A pager between a long text and the terminal: `$PAGER`, or else `less`.
//!
//! It is started by the first output, so that an error alone is printed as usual. Where there is no
//! such command, or `less` can't work (`TERM=dumb`), the text goes to the terminal. With
//! `LESS` unset, `less` leaves what fits the screen there, keeps colours, and doesn't clear the
//! screen (`FRX`), as with git.
//!
//! *Ctrl-C* goes to the pager, which ends a search by it. This process would end by it too, and
//! leave two readers at one keyboard, the shell and the pager: so it waits until the pager has
//! ended.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use crate::notice::print;

/// The variable with less's options, unless the user sets it.
const LESS: (&str, &str) = ("LESS", "FRX");
/// The exit code of a process that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// A pager that may not have begun yet, or is over: it begins once.
pub struct Pager {
    command: String,
    has_begun: bool,
    running: Option<Running>,
}

struct Running {
    /// Dropped before the pager is waited for: that is how it learns of the end.
    input: Option<std::process::ChildStdin>,
    child: Arc<Mutex<Child>>,
}

impl Pager {
    /// The pager that the environment names; `None` if it wants none.
    pub fn of_environment() -> Option<Pager> {
        let named = std::env::var("PAGER");
        // There less asks for a key before it shows anything.
        if named.is_err() && std::env::var_os("TERM").is_some_and(|name| name == "dumb") {
            return None;
        }
        let command = named.clone().unwrap_or_else(|_| "less".to_owned());
        if ["", "cat"].contains(&command.trim()) {
            return None;
        }
        if !program_exists(&command) {
            // A machine without less is no mistake of the user's.
            if named.is_ok() {
                print(format_args!("frond: PAGER names {command}, which doesn't exist"));
            }
            return None;
        }
        Some(Pager::new(command))
    }

    /// The shell's command `command`, fed when something is written.
    fn new(command: String) -> Pager {
        Pager { command, has_begun: false, running: None }
    }

    fn begin(&self) -> io::Result<Running> {
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]).stdin(Stdio::piped());
        if std::env::var_os(LESS.0).is_none() {
            command.env(LESS.0, LESS.1);
        }
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let child = Arc::new(Mutex::new(child));
        outlive(Arc::clone(&child))?;
        Ok(Running { input, child })
    }

    /// Ends the output, and waits until the reader has left it.
    pub fn end(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        drop(running.input.take());
        // The exit code is no concern of the command's.
        let _ = running.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A buffer that is written out after its reader has gone must not open another pager.
        if !self.has_begun {
            self.has_begun = true;
            self.running = Some(self.begin()?);
        }
        match self.running.as_mut().and_then(|running| running.input.as_mut()) {
            Some(input) => input.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.running.as_mut().and_then(|running| running.input.as_mut()) {
            Some(input) => input.flush(),
            // Nothing was written, or what was is out.
            None => Ok(()),
        }
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether there is the program with which `command` begins; what isn't a plain word is the shell's
/// to judge.
fn program_exists(command: &str) -> bool {
    let is_plain = |word: &&str| {
        word.chars().all(|letter| letter.is_alphanumeric() || "/._-+".contains(letter))
    };
    let Some(program) = command.split_whitespace().next().filter(is_plain) else { return true };
    let looked = Command::new("sh")
        .args(["-c", "command -v -- \"$1\"", "sh", program])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    looked.is_ok_and(|status| status.success())
}

/// Has Ctrl-C end this process only once the pager has ended, from now on.
fn outlive(child: Arc<Mutex<Child>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _guard = runtime.enter();
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    drop(_guard);
    std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        if runtime.block_on(interrupt.recv()).is_some() {
            let _ = child.lock().unwrap_or_else(PoisonError::into_inner).wait();
            std::process::exit(INTERRUPTED);
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the input of a pager that copies it to a file, if the pager was started.
    fn fed(texts: &[&str]) -> Option<String> {
        let file = std::env::temp_dir().join(format!(
            "frond-pager-{}-{}",
            std::process::id(),
            texts.len()
        ));
        let mut pager = Pager::new(format!("cat > '{}'", file.display()));
        for text in texts {
            pager.write_all(text.as_bytes()).expect("it reads");
        }
        pager.end();
        let text = std::fs::read_to_string(&file).ok();
        let _ = std::fs::remove_file(&file);
        text
    }

    #[test]
    fn a_pager_gets_what_is_written_and_none_is_started_for_nothing() {
        assert_eq!(fed(&["one\n", "two\n"]).as_deref(), Some("one\ntwo\n"));
        assert_eq!(fed(&[]), None);
    }

    #[test]
    fn a_missing_program_is_reported_before() {
        for (command, expected) in [
            ("sh", true),
            ("/bin/sh -c cat", true),
            ("LESS=R sh", true),
            ("no-such-pager -R", false),
            ("/bin/no-such-pager", false),
        ] {
            assert_eq!(program_exists(command), expected, "{command}");
        }
    }

    #[test]
    fn a_pager_that_is_left_early_ends_the_output() {
        let mut pager = Pager::new("true".to_owned());
        let long = [b'x'; 1 << 20];
        let error = (0..16).find_map(|_| pager.write_all(&long).err()).expect("nothing reads it");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    /// A buffer tries again what it couldn't write, once when it is asked to and once when it is
    /// dropped.
    #[test]
    fn a_pager_that_was_left_is_not_opened_again() {
        let file = std::env::temp_dir().join(format!("frond-pagers-{}", std::process::id()));
        let pager = Pager::new(format!("echo begun >> '{}'", file.display()));
        let mut buffered = io::BufWriter::new(pager);
        let error = (0..1 << 20).find_map(|_| buffered.write_all(b"a line\n").err());
        assert_eq!(error.expect("nothing reads it").kind(), io::ErrorKind::BrokenPipe);
        buffered.get_mut().end();
        assert!(buffered.flush().is_err());
        drop(buffered);
        let begun = std::fs::read_to_string(&file).expect("it was begun");
        std::fs::remove_file(&file).expect("it is there");
        assert_eq!(begun, "begun\n");
    }
}
