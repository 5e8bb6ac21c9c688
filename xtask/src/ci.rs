//! All that CI runs, in one build of the profile `checked`.
//!
//! 1. What reads the text alone comes first, then lints and documentation, which need no program.
//! 2. One build serves all that follows. Programs of others are installed meanwhile: downloads
//!    leave most of the processors to it.
//! 3. Unit tests, the crates' other tests and the examples of the documentation run side by side:
//!    each waits for something now and then, or has one long test at its end.
//! 4. So do the drivers and tools of others, and the small runs of the benchmarks: those show
//!    whether they work, not how fast.

use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Instant;

use crate::{
    PYTHON, SEED, book, command, compatibility, faults_of_text, refuse, run, run_command, succeeded,
};

/// A program and its arguments.
type Step = (&'static str, Vec<&'static str>);

/// One profile for all: what is generated or compiled from C for a dependency is so once.
const ALL: &[&str] = &["--profile", "checked", "--workspace"];
/// The program with overflows and assertions of ours checked: one build serves its tests, too.
const CHECKED: &str = "target/checked/frond";
/// The lints that are errors.
const LINTS: &[&str] = &["-D", "warnings"];
/// What `cargo clippy` puts behind each argument that it hands its driver in the environment.
const ARGUMENT_END: &str = "__CLIPPY_HACKERY__";
/// The targets of the benchmark's small run: only those that are built here.
const SMOKE_TARGETS: &str = "frond,frond-plain,frond-embedded,sqlite";
/// The number of lines of a check that failed which are printed once more at the end.
const LINES_SHOWN: usize = 30;

/// Runs all of it.
///
/// # Errors
/// The step that failed first; of those that ran side by side, each that failed.
pub fn run_all(root: &Path) -> Result<(), String> {
    run(root, "cargo", &["fmt", "--all", "--check"])?;
    refuse(&faults_of_text(root)?)?;
    book::build(root)?;
    run(root, "cargo", &[&["clippy"], ALL, &["--all-targets", "--"], LINTS].concat())?;
    document(root)?;
    println!("FROND_SEED_FROM={}", *SEED);
    // No example is linked but the one that prints tables: a test of `fronddb` runs them all, as
    // modules of its own.
    let build = cargo("build", &["--lib", "--bins", "--tests", "--example", "compatibility"]);
    together(root, &[build, ("python3", vec!["conformance/run.py", "--install-only"])])?;
    refuse(&compatibility::check(root)?)?;
    let tests: [&[&str]; 3] = [&["--lib", "--bins"], &["--test", "*"], &["--doc"]];
    together(root, &tests.map(|targets| cargo("test", targets)))?;
    together(root, &[conformance(), benchmarks()].concat())
}

fn cargo(act: &'static str, targets: &[&'static str]) -> Step {
    ("cargo", [&[act], ALL, targets].concat())
}

/// Writes the documentation, with warnings as errors. With clippy's driver for a compiler it finds
/// each crate checked by the lints; without, it would check all of them once more.
fn document(root: &Path) -> Result<(), String> {
    let arguments = [&["doc", "--no-deps"], ALL].concat();
    let mut doc = command(root, "cargo", &arguments);
    let driver = Path::new(env!("CARGO")).with_file_name("clippy-driver");
    if driver.is_file() {
        doc.env("RUSTC_WORKSPACE_WRAPPER", driver);
        doc.env("CLIPPY_ARGS", LINTS.join(ARGUMENT_END) + ARGUMENT_END);
    }
    run_command(&format!("cargo {}", arguments.join(" ")), doc)
}

/// What drivers, tools and harnesses that we did not write say of the program, and what it keeps
/// where it is killed, loses power or has no disk.
fn conformance() -> Vec<Step> {
    let on_checked = |program, script, options: &[&'static str]| {
        (program, [&[script, "--frond", CHECKED], options].concat())
    };
    let seed = ["--seed", SEED.as_str()];
    let seeded =
        |script, options: &[&'static str]| on_checked(PYTHON, script, &[options, &seed].concat());
    // The others are not quick: they compile.
    let drivers = ["python", "python-async", "node", "rust", "models"];
    let drivers = drivers.map(|name| ["--driver", name]);
    let set = ["--busy", "--lost-disks", "--change-streams", "--backups"];
    vec![
        on_checked("python3", "conformance/run.py", &[]),
        on_checked("python3", "conformance/s3.py", &[]),
        on_checked("python3", "conformance/azure.py", &["--quick"]),
        on_checked("python3", "conformance/google.py", &[]),
        ("python3", vec!["conformance/python_package.py"]),
        ("python3", vec!["conformance/node_package.py"]),
        on_checked("python3", "conformance/mongod.py", &[]),
        on_checked("python3", "conformance/packages.py", &[]),
        seeded("conformance/kill.py", &["--rounds", "100"]),
        seeded("conformance/bucket_log.py", &[]),
        seeded("conformance/change_streams.py", &[]),
        on_checked(PYTHON, "conformance/waiting_streams.py", &[]),
        seeded("conformance/router.py", &["--seconds", "20"]),
        seeded("conformance/faults.py", &["--rounds", "30"]),
        seeded("conformance/power.py", &["--rounds", "10"]),
        on_checked(PYTHON, "conformance/power.py", &["--rounds", "10", "--forgetful"]),
        on_checked(PYTHON, "conformance/time_series.py", &[]),
        on_checked(PYTHON, "conformance/compare_and_swap.py", &["--seconds", "10"]),
        seeded("conformance/history.py", &["--seconds", "15", "--self-test"]),
        seeded("conformance/history.py", &["--members", "3", "--seconds", "20", "--self-test"]),
        on_checked(PYTHON, "conformance/drivers.py", drivers.as_flattened()),
        on_checked(PYTHON, "conformance/monitors.py", &[]),
        on_checked(PYTHON, "conformance/specifications.py", &[]),
        on_checked(PYTHON, "conformance/replica_set.py", &set),
    ]
}

fn benchmarks() -> Vec<Step> {
    // Others may use the machine meanwhile.
    let bench =
        ["--targets", "frond", "--count", "2000", "--repetitions", "1", "--others", "100000"];
    let out = "target/docbench-smoke.jsonl";
    let smoke = ["run", "--scale", "smoke", "--managed", "--targets", SMOKE_TARGETS, "--out", out];
    vec![
        ("target/checked/frond-bench", bench.to_vec()),
        ("target/checked/docbench", smoke.to_vec()),
    ]
}
/// Runs programs side by side; prints the output of each once it has ended, one after the other.
///
/// # Errors
/// Each program that failed, with the end of its output.
fn together(root: &Path, programs: &[Step]) -> Result<(), String> {
    let run = |(program, arguments): &Step| {
        let begun = Instant::now();
        let line = format!("{program} {}", arguments.join(" "));
        let output = command(root, program, arguments).output();
        let output = output.map_err(|error| format!("{line}: {error}"))?;
        let mut standard = io::stdout().lock();
        let written = writeln!(standard, "== {line}")
            .and_then(|()| standard.write_all(&output.stdout))
            .and_then(|()| standard.write_all(&output.stderr))
            .and_then(|()| writeln!(standard, "   took {} s", begun.elapsed().as_secs()));
        written.map_err(|error| error.to_string())?;
        succeeded(&line, output.status).map_err(|failed| {
            // What failed stands at the end of either: of tests, on the standard output.
            let [log, result] = [output.stderr, output.stdout].map(|it| last_lines(&it));
            format!("{failed}\n{log}\n{result}")
        })
    };
    thread::scope(|scope| {
        let running: Vec<_> =
            programs.iter().map(|program| scope.spawn(move || run(program))).collect();
        let ended = running.into_iter().map(|one| one.join().map_err(|_| "a step panicked")?);
        let failed: Vec<String> = ended.filter_map(Result::err).collect();
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
    })
}

/// Returns the last lines of a program's output.
fn last_lines(output: &[u8]) -> String {
    let output = String::from_utf8_lossy(output);
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}
