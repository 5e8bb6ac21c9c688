//! Chores: `cargo xtask tidy` checks the tree, `cargo xtask ci` runs all that CI runs.
//!
//! Checked by `tidy`: imports between crates go one way only ([`layers`]), and those between the
//! rooms of a crate but for what is counted there ([`walls`]); names that were given up don't come
//! back ([`words`]); files and functions stay short, and nothing in them was left open ([`lines`]);
//! functions say when they fail, and no link is dead ([`documentation`]); lines of pages are short,
//! too ([`prose`]); what the pages for developers name is there ([`mentions`]); the book has every
//! page ([`book`]); a `format` module that changed has its document changed with it ([`formats`]);
//! COMPATIBILITY.md has the tables that the code has ([`compatibility`]).

mod book;
mod ci;
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
mod release;
mod walls;
mod words;

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::LazyLock;
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask tidy | ci | long | release | wrap | book | bless | compatibility | figures | fuzz | mutants

  tidy   checks layers, walls inside crates, file lengths, marks left in the code, documentation, links,
         format documents
  ci     everything: format, lints as errors, documentation, tidy, all tests and the program with the
         release's optimisations, overflows and assertions checked; then the drivers and tools of
         others (installed under target/) against a running server, a real S3-compatible store where
         Go can build it, a hundred kills of a server under load, calls of its disk that fail, power
         cuts, swaps of many clients, the history of their transactions, and small runs of the benchmarks
  long [MINUTES]  what is worth hours: the property and crash tests with twenty times as many seeds, kills,
         failing calls for so many minutes (60), power cuts, and each fuzzer for ten minutes
  release [OPTIONS OF CARGO BUILD]  the program below target/reproducible, the same bytes wherever the
         source lies
  wrap   breaks the lines of pages that are too long
  book   the documentation as a book under target/book, by mdBook where it is installed
  bless  records the present hash of each format module in its document
  compatibility  writes the tables of COMPATIBILITY.md
  figures  counts how the code reads: lengths, rings of files, documented errors, examples
  fuzz [TARGET|all] [SECONDS]  feeds decoders and commands with mutated bytes, each for a minute unless
         you say otherwise (needs a nightly toolchain)
  mutants --crate NAME ...  changes the crate at random in small ways; which of them no test notices?
         (`mutants/src/main.rs` says how)";

const FROND: &str = "target/release/frond";
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
/// The interpreter for which `conformance/run.py` has installed PyMongo.
const PYTHON: &str = "target/conformance/venv/bin/python";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let done = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(root),
        Some("ci") => ci::run_all(root),
        Some("long") => long(root, std::env::args().nth(2).as_deref().unwrap_or("60")),
        Some("release") => release::build(root, std::env::args().skip(2)),
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
    let mut faults = faults_of_text(root)?;
    faults.extend(compatibility::check(root)?);
    refuse(&faults)?;
    walls::print(root)?;
    println!("tidy: nothing found");
    Ok(())
}

/// What `tidy` finds without building anything.
fn faults_of_text(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = layers::check(root)?;
    faults.extend(walls::check(root)?);
    faults.extend(words::check(root)?);
    faults.extend(lines::check(root)?);
    faults.extend(documentation::check(root)?);
    faults.extend(prose::check(root)?);
    faults.extend(mentions::check(root)?);
    faults.extend(book::check(root)?);
    faults.extend(formats::check(root)?);
    Ok(faults)
}

fn refuse(faults: &[String]) -> Result<(), String> {
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
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
    on_server(&["conformance/history.py", "--members", "3", "--seconds", "3600", "--seed", &SEED])?;
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
    run_command(&line, command(root, program, arguments))
}

/// Runs a command that `line` shows.
fn run_command(line: &str, mut command: Command) -> Result<(), String> {
    println!("== {line}");
    let begun = Instant::now();
    let status = command.status();
    println!("   took {} s", begun.elapsed().as_secs());
    succeeded(line, status.map_err(|error| error.to_string())?)
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
