//! Chores: `cargo xtask tidy` checks the tree, `cargo xtask ci` runs all that CI runs.
//!
//! Checked by `tidy`: imports between crates go one way only ([`layers`]), and those between the
//! rooms of a crate but for what is counted there ([`walls`]); files and functions stay short, and
//! nothing in them was left open ([`lines`]); functions say when they fail, and no link is dead
//! ([`documentation`]); lines of pages are short, too ([`prose`]); what the pages for developers
//! name is there ([`mentions`]); the book has every page ([`book`]); a `format` module that changed
//! has its document changed with it ([`formats`]); COMPATIBILITY.md has the tables that the code
//! has ([`compatibility`]).

mod book;
mod compatibility;
mod documentation;
mod figures;
mod formats;
mod functions;
mod fuzz;
mod imports;
mod layers;
mod lines;
mod mentions;
mod prose;
mod walls;
mod words;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::LazyLock;
use std::thread;
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask tidy | ci | long | wrap | book | bless | compatibility | figures | fuzz | mutants

  tidy   checks layers, walls inside crates, file lengths, marks left in the code, documentation, links,
         format documents
  ci     everything: format, lints as errors, documentation, tidy, all tests and the program with the
         release's optimisations, overflows and assertions checked; then the drivers and tools of
         others (installed under target/) against a running server, a real S3-compatible store where
         Go can build it, a hundred kills of a server under load, calls of its disk that fail, power
         cuts, swaps of many clients, the history of their transactions, and small runs of the benchmarks
  long [MINUTES]  what is worth hours: the property and crash tests with twenty times as many seeds, kills,
         failing calls for so many minutes (60), power cuts, and each fuzzer for ten minutes
  wrap   breaks the lines of pages that are too long
  book   the documentation as a book under target/book, by mdBook where it is installed
  bless  records the present hash of each format module in its document
  compatibility  writes the tables of COMPATIBILITY.md
  figures  counts how the code reads: lengths, rings of files, documented errors, examples
  fuzz [TARGET|all] [SECONDS]  feeds decoders and commands with mutated bytes, each for a minute unless
         told (needs a nightly toolchain)
  mutants --crate NAME ...  changes the crate at random in small ways; which of them no test notices?
         (`mutants/src/main.rs` tells how)";

const FROND: &str = "target/release/frond";
/// The same program with overflows and assertions of ours checked: what CI runs, since one build
/// serves its tests, too.
const CHECKED: &str = "target/checked/frond";
/// The crates whose tests the long run repeats.
const STORAGE: &[&str] = &["frond-store", "frond-tree", "frond-engine", "frond-db", "frond-vcs"];
/// The factor for the number of seeds of the long run.
const LONG_TIMES: &str = "20";
/// The time that it runs each fuzzer.
const FUZZ_SECONDS: &str = "600";
/// The seed at which all tests of a run begin: another one each time, unless the environment gives
/// it. A run prints it, and says it again when it fails.
static SEED: LazyLock<String> = LazyLock::new(|| {
    let fresh = || (RandomState::new().hash_one(()) >> 32).to_string();
    std::env::var("FROND_SEED_FROM").unwrap_or_else(|_| fresh())
});
/// The number of lines of a check that failed which are printed once more at the end.
const LINES_SAID: usize = 30;
/// The interpreter for which `conformance/run.py` has installed PyMongo.
const PYTHON: &str = "target/conformance/venv/bin/python";

/// The targets of the benchmark's small run: only those that are built here.
const SMOKE_TARGETS: &str = "frond,frond-plain,frond-embedded,sqlite";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let done = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(root),
        Some("ci") => ci(root),
        Some("long") => long(root, std::env::args().nth(2).as_deref().unwrap_or("60")),
        Some("wrap") => prose::write(root),
        Some("book") => book::build(root),
        Some("bless") => formats::bless(root),
        Some("compatibility") => compatibility::write(root),
        Some("figures") => figures::print(root),
        Some("fuzz") => fuzz::fuzz(root, std::env::args().skip(2)),
        Some("mutants") => mutants(root),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            if let Some(command @ ("ci" | "long")) = std::env::args().nth(1).as_deref() {
                eprintln!("the same seeds again: FROND_SEED_FROM={} cargo xtask {command}", *SEED);
            }
            ExitCode::FAILURE
        }
    }
}

fn tidy(root: &Path) -> Result<(), String> {
    let mut faults = layers::check(root)?;
    faults.extend(walls::check(root)?);
    faults.extend(words::check(root)?);
    faults.extend(lines::check(root)?);
    faults.extend(documentation::check(root)?);
    faults.extend(prose::check(root)?);
    faults.extend(mentions::check(root)?);
    faults.extend(book::check(root)?);
    faults.extend(formats::check(root)?);
    faults.extend(compatibility::check(root)?);
    if faults.is_empty() {
        walls::print(root)?;
        println!("tidy: nothing found");
        return Ok(());
    }
    Err(faults.join("\n"))
}

fn ci(root: &Path) -> Result<(), String> {
    run(root, "cargo", &["fmt", "--all", "--check"])?;
    tidy(root)?;
    book::build(root)?;
    // One profile for all: what is generated or compiled from C for a dependency is so once.
    let all = ["--profile", "checked", "--workspace"];
    let lints = ["--all-targets", "--", "-D", "warnings"];
    run(root, "cargo", &[&["clippy"], &all[..], &lints].concat())?;
    run(root, "cargo", &[&["doc", "--no-deps"], &all[..]].concat())?;
    println!("FROND_SEED_FROM={}", *SEED);
    // Downloads, and later the checks that wait for disks, leave most of the processors to others.
    // No example is linked: a test of `fronddb` runs them all, as modules of its own.
    let build = [&["build", "--lib", "--bins", "--tests"], &all[..]].concat();
    let install = ["conformance/run.py", "--install-only"];
    together(root, &[("cargo", &build), ("python3", &install)])?;
    run(root, "cargo", &[&["test", "--lib", "--bins", "--tests"], &all[..]].concat())?;
    run(root, "cargo", &[&["test", "--doc"], &all[..]].concat())?;
    let swaps = ["conformance/compare_and_swap.py", "--frond", CHECKED, "--seconds", "10"];
    let set = ["conformance/replica_set.py", "--frond", CHECKED, "--busy", "--lost-disks"];
    let set = [&set[..], &["--change-streams", "--backups"]].concat();
    let history =
        ["conformance/history.py", "--frond", CHECKED, "--seconds", "15", "--seed", &SEED];
    let history = [&history[..], &["--self-test"]].concat();
    // The others are not quick: they compile.
    let drivers = ["python", "python-async", "node", "rust", "models"];
    let drivers = drivers.map(|name| ["--driver", name]);
    let drivers =
        [&["conformance/drivers.py", "--frond", CHECKED], drivers.as_flattened()].concat();
    let checks: &[(&str, &[&str])] = &[
        ("python3", &["conformance/run.py", "--frond", CHECKED]),
        ("python3", &["conformance/s3.py", "--frond", CHECKED]),
        ("python3", &["conformance/python_package.py"]),
        ("python3", &["conformance/node_package.py"]),
        ("python3", &["conformance/mongod.py", "--frond", CHECKED]),
        ("python3", &["conformance/packages.py", "--frond", CHECKED]),
        (PYTHON, &["conformance/kill.py", "--frond", CHECKED, "--rounds", "100", "--seed", &SEED]),
        (PYTHON, &["conformance/bucket_log.py", "--frond", CHECKED, "--seed", &SEED]),
        (PYTHON, &["conformance/change_streams.py", "--frond", CHECKED, "--seed", &SEED]),
        (PYTHON, &["conformance/waiting_streams.py", "--frond", CHECKED]),
        (
            PYTHON,
            &["conformance/router.py", "--frond", CHECKED, "--seconds", "20", "--seed", &SEED],
        ),
        (PYTHON, &["conformance/faults.py", "--frond", CHECKED, "--rounds", "30", "--seed", &SEED]),
        (PYTHON, &["conformance/power.py", "--frond", CHECKED, "--rounds", "10", "--seed", &SEED]),
        (PYTHON, &["conformance/power.py", "--frond", CHECKED, "--rounds", "10", "--forgetful"]),
        (PYTHON, &["conformance/time_series.py", "--frond", CHECKED]),
        (PYTHON, &swaps),
        (PYTHON, &history),
        (PYTHON, &drivers),
        (PYTHON, &["conformance/monitors.py", "--frond", CHECKED]),
        (PYTHON, &set),
    ];
    together(root, checks)?;
    // Whether it works, not how fast: others may use the machine meanwhile.
    let others = ["--others", "100000"];
    let bench = ["--targets", "frond", "--count", "2000", "--repetitions", "1"];
    let bench = [&bench[..], &others].concat();
    run(root, "target/checked/frond-bench", &bench)?;
    let out = "target/docbench-smoke.jsonl";
    let smoke = ["run", "--scale", "smoke", "--managed", "--targets", SMOKE_TARGETS, "--out", out];
    run(root, "target/checked/docbench", &smoke)
}

/// Runs the checks that take hours: before a release, and at night.
fn long(root: &Path, minutes: &str) -> Result<(), String> {
    println!("FROND_SEED_FROM={}", *SEED);
    let packages = STORAGE.iter().flat_map(|name| ["--package", name]);
    let tests: Vec<&str> = ["test", "--profile", "checked"].into_iter().chain(packages).collect();
    println!("== FROND_SEED_TIMES={LONG_TIMES} cargo {}", tests.join(" "));
    let mut tests = command(root, "cargo", &tests);
    let status = tests.env("FROND_SEED_TIMES", LONG_TIMES).status();
    succeeded("the tests", status.map_err(|error| error.to_string())?)?;
    run(root, "cargo", &["build", "--release", "-p", "frond-cli"])?;
    run(root, "cargo", &["build", "--release", "-p", "fronddb", "--example", "load"])?;
    run(root, "python3", &["conformance/run.py", "--install-only"])?;
    let on_server = |arguments: &[&str]| {
        let (script, rest) = arguments.split_first().expect("a script");
        run(root, PYTHON, &[&[*script, "--frond", FROND], rest].concat())
    };
    on_server(&["conformance/kill.py", "--rounds", "1000", "--seed", &SEED])?;
    on_server(&["conformance/faults.py", "--minutes", minutes, "--seed", &SEED])?;
    on_server(&["conformance/power.py", "--rounds", "300", "--seed", &SEED])?;
    on_server(&["conformance/round_trips.py", "--long", "--seed", &SEED])?;
    on_server(&["conformance/any_plan.py", "--seconds", "1800"])?;
    on_server(&["conformance/history.py", "--seconds", "3600", "--seed", &SEED])?;
    on_server(&["conformance/hostile.py", "--grace", "5"])?;
    on_server(&["conformance/memory.py", "--memory", "600", "--seconds", "600", "--seed", &SEED])?;
    fuzz::fuzz(root, ["all", FUZZ_SECONDS].into_iter().map(str::to_owned))
}

/// The tool is a workspace of its own, so that nothing else waits for its parser of Rust.
fn mutants(root: &Path) -> Result<(), String> {
    let manifest = ["run", "--quiet", "--manifest-path", "mutants/Cargo.toml"];
    let target = ["--target-dir", "target/mutants/tool", "--", "."];
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let arguments = arguments.iter().map(String::as_str);
    run(root, "cargo", &manifest.into_iter().chain(target).chain(arguments).collect::<Vec<_>>())
}

fn run(root: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let line = format!("{program} {}", arguments.join(" "));
    println!("== {line}");
    let begun = Instant::now();
    let status = command(root, program, arguments).status();
    println!("   took {} s", begun.elapsed().as_secs());
    succeeded(&line, status.map_err(|error| error.to_string())?)
}

/// Runs programs at the same time; prints what each said once it has ended, one after the other.
///
/// # Errors
/// Each program that failed, with the end of what it said.
fn together(root: &Path, programs: &[(&str, &[&str])]) -> Result<(), String> {
    let run = |(program, arguments): &(&str, &[&str])| {
        let begun = Instant::now();
        let line = format!("{program} {}", arguments.join(" "));
        let output = command(root, program, arguments).output();
        let output = output.map_err(|error| format!("{line}: {error}"))?;
        let mut standard = io::stdout().lock();
        let told = writeln!(standard, "== {line}")
            .and_then(|()| standard.write_all(&output.stdout))
            .and_then(|()| standard.write_all(&output.stderr))
            .and_then(|()| writeln!(standard, "   took {} s", begun.elapsed().as_secs()));
        told.map_err(|error| error.to_string())?;
        succeeded(&line, output.status).map_err(|failed| {
            let said = [output.stdout, output.stderr].concat();
            format!("{failed}\n{}", last_lines(&String::from_utf8_lossy(&said)))
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

/// The last lines of what a program said.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(LINES_SAID)..].join("\n")
}

fn command(root: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(if program == "cargo" { env!("CARGO") } else { program });
    command.args(arguments).current_dir(root);
    command.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links");
    command.env("FROND_SEED_FROM", &*SEED);
    command
}

fn succeeded(line: &str, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("{line}: failed")) }
}

/// The files that git tracks below `root`, with paths relative to it, whose names end in `suffix`.
fn tracked(root: &Path, suffix: &str) -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    let text = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    Ok(text
        .lines()
        .filter(|line| line.ends_with(suffix) && root.join(line).is_file())
        .map(PathBuf::from)
        .collect())
}

fn read(root: &Path, path: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|error| format!("{}: {error}", path.display()))
}
