//! A hook that is a program.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use frond_db::Interrupt;
use frond_doc::DocumentBuf;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{HookFailure, MESSAGE_BYTES_MAX, line_of};

/// The interval of checks whether a hook has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Our own variables in the environment may be secret.
const OURS: &str = "FROND_";
/// What a hook gets in variables, too.
const VARIABLES: &[(&str, &str)] = &[
    ("hook", "FROND_HOOK"),
    ("database", "FROND_DATABASE"),
    ("branch", "FROND_BRANCH"),
    ("user", "FROND_USER"),
    ("commitId", "FROND_COMMIT"),
    ("mergeInId", "FROND_MERGE_IN"),
];
/// The time that what a hook has started may still speak when the hook has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Runs a hook and waits for it.
///
/// # Errors
/// The hook's output, if it refused; that it couldn't be run, or took too long; what `interrupt`
/// says.
pub fn run(
    (file, name): (&Path, &str),
    facts: &DocumentBuf,
    time_max: Duration,
    interrupt: &Interrupt,
) -> Result<(), HookFailure> {
    let mut command = Command::new(file);
    command.arg(name).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Processes that it starts end with it.
    command.process_group(0);
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with(OURS) {
            command.env_remove(variable);
        }
    }
    for (fact, variable) in VARIABLES {
        if let Some(value) = facts.get(fact).and_then(|value| value.as_str()) {
            // A variable can't hold a zero.
            command.env(variable, value.replace('\0', ""));
        }
    }
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", file.display()))?;
    let line = line_of(facts);
    if let Some(mut input) = child.stdin.take() {
        // Ends when the hook does, if that reads nothing.
        thread::spawn(move || input.write_all(line.as_bytes()));
    }
    let errors = child.stderr.take().map(listen);
    let status = wait(&mut child, time_max, interrupt)?;
    if status.success() {
        return Ok(());
    }
    let errors = errors.and_then(|errors| errors.recv_timeout(LAST_WORDS).ok()).unwrap_or_default();
    Err(HookFailure::Refused(if errors.is_empty() { status.to_string() } else { errors }))
}

/// Reads what a hook says. A program that it left behind may hold the other end for long.
fn listen(mut errors: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = (&mut errors).take(MESSAGE_BYTES_MAX).read_to_end(&mut text);
        // Too late for a caller that has gone on.
        let _ = sender.send(String::from_utf8_lossy(&text).trim().to_owned());
        let _ = std::io::copy(&mut errors, &mut std::io::sink());
    });
    receiver
}

/// Waits for its end, or ends it.
fn wait(
    child: &mut Child,
    time_max: Duration,
    interrupt: &Interrupt,
) -> Result<ExitStatus, HookFailure> {
    let begun = Instant::now();
    loop {
        let failure = match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if begun.elapsed() < time_max => match interrupt.check() {
                Ok(()) => {
                    thread::sleep(LOOK_EVERY);
                    continue;
                }
                Err(error) => HookFailure::Interrupted(error),
            },
            _ => HookFailure::Refused(took_too_long(time_max)),
        };
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = child.kill();
        let _ = child.wait();
        return Err(failure);
    }
}

/// The refusal of a hook that had to be stopped.
pub(super) fn took_too_long(time_max: Duration) -> String {
    format!("it took longer than {} s, and was stopped", time_max.as_secs_f32())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use frond_db::Error;
    use frond_doc::document;
    use frond_query::Code;

    use super::*;

    /// Also what it has started, and what goes on speaking when it has ended.
    #[test]
    fn hooks_end_in_time() {
        let file = std::env::temp_dir().join(format!("frond-hook-{}", std::process::id()));
        let facts = document! { "hook": "pre-commit", "branch": "a\0b" };
        for (script, expected) in [
            ("exit 0", Ok(())),
            ("sleep 60 & exit 0", Ok(())),
            ("test \"$FROND_BRANCH\" = ab", Ok(())),
            ("echo no >&2; exit 3", Err("no")),
            ("exit 3", Err("exit status: 3")),
            ("sleep 60", Err("it took longer than 0.5 s, and was stopped")),
            ("(sleep 60; echo late >&2) & exit 1", Err("exit status: 1")),
            ("yes >&2 & sleep 60", Err("it took longer than 0.5 s, and was stopped")),
        ] {
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("it is written");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).expect("its mode");
            let begun = Instant::now();
            let half = Duration::from_millis(500);
            let done = match run((&file, "pre-commit"), &facts, half, &Interrupt::default()) {
                Ok(()) => Ok(()),
                Err(HookFailure::Refused(what)) => Err(what),
                Err(other) => panic!("nothing interrupts it: {other:?}"),
            };
            assert_eq!(done, expected.map_err(str::to_owned), "{script}");
            assert!(begun.elapsed() < Duration::from_secs(10), "{script}");
        }
        // An interrupt ends it, too, and what it has started.
        let mark = file.with_extension("mark");
        let script = format!("#!/bin/sh\n(sleep 1; touch {}) &\nsleep 60\n", mark.display());
        fs::write(&file, script).expect("it is written");
        let begun = Instant::now();
        let interrupt = Interrupt::new(move || match begun.elapsed().as_millis() {
            0..200 => Ok(()),
            _ => Err(Error::invalid(Code::Interrupted, "killed")),
        });
        match run((&file, "pre-commit"), &facts, Duration::from_secs(60), &interrupt) {
            Err(HookFailure::Interrupted(error)) => assert_eq!(error.code, Code::Interrupted),
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(1_300));
        assert!(!mark.exists(), "what it has started goes on");
        fs::remove_file(&file).expect("it is there");
    }
}
