//! Frond's benchmark: the same work on Frond and on its peers, with what it costs.
//!
//!     cargo run --release -p frond-bench --features peers -- --count 100000
//!
//! Reading order: [`order`] (the documents), [`target`] (what a database must do), [`workload`]
//! (what is measured), [`measure`] (what it costs), [`targets`] (the databases), [`report`] (the
//! tables).
//! The method, and a run, are in `docs/notes/2026-11-22-sqlite-and-postgresql.md`.

mod measure;
mod order;
mod report;
mod target;
mod targets;
mod workload;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;

use crate::measure::MachineUse;
use crate::report::Column;
use crate::target::Failure;
use crate::workload::{Measured, Scale};

/// As in the `frond` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often a run is tried while others use the machine, and how long the pause between is.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(5);

/// Measures Frond and its peers, and prints the tables as Markdown.
#[derive(Parser)]
struct Arguments {
    /// Documents that are loaded; the other work grows with it.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(200..))]
    count: u64,
    /// Which databases, separated by commas; Frond's ratios need it to be first.
    #[arg(long, value_delimiter = ',', default_values_t = targets::NAMES.map(String::from))]
    targets: Vec<String>,
    /// How often all is done; the tables have the medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// A run during which other processes used more than this, in percent of one processor, doesn't
    /// count and is repeated, at most ten times.
    #[arg(long, default_value_t = 30.0)]
    others: f64,
    /// Where the data directories are made; must be on a real disk.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let base = arguments.directory.join(format!("frond-bench-{}", std::process::id()));
    let done = run(&arguments, &base);
    // A directory that could not be made need not be removed.
    if let Err(error) = fs::remove_dir_all(&base)
        && base.exists()
    {
        eprintln!("{} stays: {error}", base.display());
    }
    match done {
        Ok(all_ran) if all_ran => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("frond-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and prints; answers whether every target that was there gave right answers.
fn run(arguments: &Arguments, base: &Path) -> Result<bool, Failure> {
    fs::create_dir_all(base)?;
    let scale = Scale::of(arguments.count);
    let load_before = load();
    let mut columns: Vec<Column> = arguments.targets.iter().map(|name| column(name)).collect();
    let idle = measure::idle_bytes_per_second(base);
    let mut probes = Vec::new();
    for repetition in 0..arguments.repetitions {
        probes.push(measure::sync_probe_micros(base)?);
        for position in 0..columns.len() {
            // Each repetition begins with another target, so that none is always the first.
            let position = (position + repetition as usize) % columns.len();
            let (name, column) = (&arguments.targets[position], &mut columns[position]);
            if column.failure.is_some() {
                continue;
            }
            eprintln!("repetition {} of {}: {name}", repetition + 1, arguments.repetitions);
            match measure_quietly(name, &base.join(name), scale, column, arguments.others / 100.0) {
                Ok(measured) => column.repetitions.push(measured),
                Err(error) => {
                    eprintln!("{name}: {error}");
                    column.failure = Some(error.to_string());
                    column.repetitions.clear();
                }
            }
        }
    }
    println!("- **Machine**: {}", machine());
    println!("- **Load** (1, 5 and 15 minutes): before {load_before}, at the end {}", load());
    println!("- **Disk**: 4 KB appended and synced take {probes:?} µs (median, each repetition)");
    match idle {
        Some(idle) => println!("- **Other writers**: {} KB a second before the run", idle / 1_000),
        None => println!("- **Bytes written** are not known: no block device counts them here"),
    }
    println!("- **Source**: {}", source());
    println!("- **Work**: {scale:?}, {} repetitions", arguments.repetitions);
    println!(
        "- **Others** used at most {} % of a processor in a run that counts",
        arguments.others
    );
    let bytes = columns.iter().flat_map(|column| &column.repetitions).map(|one| one.document_bytes);
    if let (Some(least), Some(most)) = (bytes.clone().min(), bytes.max()) {
        println!("- **Documents**: {least} to {most} bytes each on average, by target");
    }
    println!("{}", report::tables(&columns));
    Ok(columns.iter().all(|column| column.failure.is_none()))
}

fn column(name: &str) -> Column {
    Column { name: name.into(), description: String::new(), repetitions: Vec::new(), failure: None }
}

/// Measures until the machine was ours: on a shared one the tables would show its other users.
fn measure_quietly(
    name: &str,
    directory: &Path,
    scale: Scale,
    column: &mut Column,
    others_max: f64,
) -> Result<Measured, Failure> {
    for _ in 0..TRIES {
        let (others, measured) = measure_target(name, directory, scale, column)?;
        if others <= others_max {
            return Ok(measured);
        }
        eprintln!("other processes used {:.0} % of a processor: once more", others * 100.0);
        std::thread::sleep(PAUSE);
    }
    Err(format!("the machine is in use by others: {TRIES} tries").into())
}

/// Everything on one target, in a directory that is empty before and gone afterwards; and what
/// others used meanwhile, in processors.
fn measure_target(
    name: &str,
    directory: &Path,
    scale: Scale,
    column: &mut Column,
) -> Result<(f64, Measured), Failure> {
    fs::create_dir_all(directory)?;
    let (before, begin) = (MachineUse::before()?, Instant::now());
    let target = targets::start(name, directory)?;
    column.name = target.name().into();
    column.description = target.description().into();
    let measured = workload::run(target.as_ref(), scale)?;
    let others = before.others_since(target.as_ref(), begin.elapsed())?;
    drop(target);
    fs::remove_dir_all(directory)?;
    Ok((others, measured))
}

fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Processor, memory and kernel, by the kernel's account.
fn machine() -> String {
    let field = |path: &str, name: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or(String::new(), |(_, value)| value.trim().to_string())
    };
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{} ({cores} cores), {} of memory, Linux {}",
        field("/proc/cpuinfo", "model name"),
        field("/proc/meminfo", "MemTotal"),
        kernel.trim()
    )
}

/// The commit that was measured, and whether the tree differed from it.
fn source() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    match (git(&["rev-parse", "--short", "HEAD"]), git(&["status", "--porcelain", "-uno"])) {
        (Some(commit), Some(changes)) if changes.is_empty() => commit,
        (Some(commit), _) => format!("{commit} with changes"),
        _ => "not in a repository".into(),
    }
}
