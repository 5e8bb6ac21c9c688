//! Coverage-guided fuzzing (`fuzz/`): builds with instrumentation, for which a nightly toolchain is
//! needed, and runs targets one after the other. Their corpus stays in `target/fuzz/corpus` and is
//! where the next run begins.
//!
//! Seeds of the targets that take text are the raw strings of the tests, the dictionary is the
//! names with a dollar that the query language has.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{read, succeeded, tracked};

const TARGETS: &[&str] = &[
    "document",
    "json",
    "key",
    "column",
    "pieces",
    "tree",
    "message",
    "frame",
    "command",
    "directory",
];
const INSTRUMENTED: &str = "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";
const SECONDS: &str = "60";

/// `arguments`: a target or nothing, and for how many seconds.
pub fn fuzz(root: &Path, mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let argument = arguments.next();
    let seconds = arguments.next().unwrap_or_else(|| SECONDS.to_owned());
    let all = || TARGETS.iter().map(|name| (*name).to_owned()).collect();
    let targets: Vec<String> = match argument {
        Some(name) if TARGETS.contains(&&*name) => vec![name],
        Some(name) if name != "all" => {
            return Err(format!("no target {name}: all, {}", TARGETS.join(", ")));
        }
        _ => all(),
    };
    let host = host()?;
    build(root, &host)?;
    write_seeds(root)?;
    let built = root.join("target/fuzz").join(host).join("release/frond-fuzz");
    for target in &targets {
        println!("== {target}");
        succeeded(target, one(root, &built, target, &seconds)?)?;
    }
    println!("fuzz: nothing found");
    Ok(())
}

fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

fn host() -> Result<String, String> {
    let host = nightly().args(["rustc", "--print", "host-tuple"]).output();
    let output = host.map_err(|error| format!("rustup: {error}"))?;
    succeeded(
        "rustc (is there a nightly toolchain? rustup toolchain install nightly)",
        output.status,
    )?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Builds with `--target`: with it the instrumentation is for the program alone, not for what
/// builds it.
fn build(root: &Path, host: &str) -> Result<(), String> {
    let mut command = nightly();
    command.args(["cargo", "build", "--release", "--target", host]);
    command.args(["--target-dir", "../target/fuzz"]).current_dir(root.join("fuzz"));
    let status = command.env("RUSTFLAGS", INSTRUMENTED).status();
    succeeded("the build", status.map_err(|error| format!("rustup: {error}"))?)
}

fn one(
    root: &Path,
    built: &Path,
    target: &str,
    seconds: &str,
) -> Result<std::process::ExitStatus, String> {
    let within = |part: &str| root.join("target/fuzz").join(part);
    let corpus = within("corpus").join(target);
    fs::create_dir_all(&corpus).map_err(|error| error.to_string())?;
    let mut command = Command::new(built);
    command.env("FROND_FUZZ", target).arg(&corpus);
    if matches!(target, "json" | "command") {
        command.arg(within("seeds")).arg(format!("-dict={}", within("names.dict").display()));
    }
    command.args([&format!("-max_total_time={seconds}"), "-timeout=20", "-print_final_stats=1"]);
    command.args(["-max_len=4096", "-verbosity=0"]);
    command.arg(format!("-artifact_prefix={}/{target}-", within("").display()));
    command.status().map_err(|error| error.to_string())
}

/// Writes the texts in the tests, and the names.
fn write_seeds(root: &Path) -> Result<(), String> {
    let (mut texts, mut names) = (BTreeSet::new(), BTreeSet::new());
    for path in tracked(root, ".rs")? {
        let source = read(root, &path)?;
        let raw = source.split("r#\"").skip(1).filter_map(|rest| rest.split("\"#").next());
        texts.extend(raw.filter(|text| text.starts_with('{')).map(|text| text.replace('\n', " ")));
        let quoted = source.split("\"$").skip(1).filter_map(|rest| rest.split('"').next());
        let is_name = |name: &&str| name.chars().all(|letter| letter.is_ascii_alphanumeric());
        names.extend(quoted.filter(is_name).map(|name| format!("\"${name}\"\n")));
    }
    let seeds = root.join("target/fuzz/seeds");
    fs::create_dir_all(&seeds).map_err(|error| error.to_string())?;
    for (number, text) in texts.iter().enumerate() {
        fs::write(seeds.join(number.to_string()), text).map_err(|error| error.to_string())?;
    }
    let names: String = names.into_iter().collect();
    fs::write(root.join("target/fuzz/names.dict"), names).map_err(|error| error.to_string())
}
