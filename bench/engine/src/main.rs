//! The engine's benchmark: Frond's engine side by side with other storage engines.
//!
//!     cargo run --release -p frond-engine-bench --features peers -- --full
//!
//! Reading order: [`target`] (what an engine must do), [`targets`] (the engines), [`workload`]
//! (what is measured), [`measure`] (what it costs), [`report`] (the tables). This process starts
//! one of its own kind for each target and workload, on an empty directory, one after the other,
//! and gathers what they print. The method, and a run, are in `docs/notes/2026-11-23-engine.md`.

mod document;
mod figures;
mod limit;
mod measure;
mod random;
mod report;
mod target;
mod targets;
mod workload;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;

use crate::figures::Figures;
use crate::limit::MemoryGroup;
use crate::report::{Outcome, Table};
use crate::target::{Failure, Settings};
use crate::workload::{Context, Scale, Workload};

/// As in the `frond` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A child says so on its own line if its target isn't there.
const NOT_RUN: &str = "not run";
/// A process that takes this much longer than its time for inserting is ended.
const PATIENCE: Duration = Duration::from_secs(120);
/// Without `--insert-seconds`, those for which it isn't decisive insert no longer than this.
const INSERT_TIME_OTHERS: Duration = Duration::from_secs(30);
const TARGETS_DECISIVE: [&str; 2] = ["frond", "rocksdb"];
const POLL: Duration = Duration::from_millis(20);

/// Measures Frond's engine and its peers, and prints tables as Markdown.
#[derive(Parser, Clone)]
struct Arguments {
    /// A smoke run: small data, short times (the default).
    #[arg(long)]
    quick: bool,
    /// The whole suite: under 15 minutes on two quiet processors.
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Which engines, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = targets::NAMES.map(String::from))]
    targets: Vec<String>,
    /// Which workloads, separated by commas: indexed-insert, commits, hot, ycsb-memory, ycsb-4x,
    /// scan, scan-4x, tree, versions, small-memory, recovery; and, only if it is named, since it
    /// takes root, ycsb-limited.
    #[arg(long, value_delimiter = ',', default_values_t = workload::names_by_default())]
    workloads: Vec<String>,
    /// Documents of indexed-insert.
    #[arg(long)]
    documents: Option<u64>,
    /// Seconds after which indexed-insert stops inserting.
    #[arg(long)]
    insert_seconds: Option<f64>,
    /// Seconds that each measurement of a rate takes.
    #[arg(long)]
    rate_seconds: Option<f64>,
    /// Records of ycsb.
    #[arg(long)]
    records: Option<u64>,
    /// Entries of scan.
    #[arg(long)]
    scan_entries: Option<u64>,
    /// Entries of the larger tree of versions.
    #[arg(long)]
    version_entries: Option<u64>,
    /// The one number of threads of commits, hot and ycsb, instead of all.
    #[arg(long)]
    threads: Option<u64>,
    /// How many eighths of all memory engines' caches get in ycsb-limited, instead of what is best
    /// for each.
    #[arg(long)]
    cache_eighths: Option<u64>,
    /// Where the data directories are made; must be on a real disk.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
    /// Also write the report to this file.
    #[arg(long)]
    output: Option<PathBuf>,
    /// What this process measures, for the one that started it.
    #[arg(long, hide = true)]
    child: bool,
    /// The control group that this process is to enter.
    #[arg(long, hide = true)]
    group: Option<PathBuf>,
}

impl Arguments {
    fn scale(&self) -> Scale {
        let pick = |quick: u64, full: u64| if self.full { full } else { quick };
        let seconds = |given: Option<f64>, quick: f64, full: f64| {
            Duration::from_secs_f64(given.unwrap_or(if self.full { full } else { quick }))
        };
        Scale {
            documents: self.documents.unwrap_or(pick(100_000, 4_000_000)),
            insert_time: seconds(self.insert_seconds, 5.0, 110.0),
            rate_time: seconds(self.rate_seconds, 0.3, 1.5),
            records: self.records.unwrap_or(pick(20_000, 200_000)),
            scan_entries: self.scan_entries.unwrap_or(pick(200_000, 2_000_000)),
            version_entries: self.version_entries.unwrap_or(pick(200_000, 10_000_000)),
            threads: self.threads,
            cache_eighths: self.cache_eighths,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = if arguments.child { measure_here(&arguments) } else { run(&arguments) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("frond-engine-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// As the child: measures one target in one workload and prints the figures.
fn measure_here(arguments: &Arguments) -> Result<(), Failure> {
    let ([target], [workload]) = (&arguments.targets[..], &arguments.workloads[..]) else {
        return Err("a child measures one target in one workload".into());
    };
    if let Some(group) = &arguments.group {
        limit::enter(group)?;
    }
    let directory = &arguments.directory;
    let context = Context { target, directory, scale: arguments.scale() };
    let mut figures = Figures::default();
    if (find(workload)?.run)(&context, &mut figures)? {
        print!("{}", figures.encode());
    } else {
        println!("{NOT_RUN}");
    }
    Ok(())
}

fn find(name: &str) -> Result<&'static Workload, Failure> {
    let found = workload::ALL.iter().find(|workload| workload.name == name);
    found.ok_or_else(|| format!("no workload is called {name}").into())
}

/// As the parent: measures everything, prints each table when it is complete.
fn run(arguments: &Arguments) -> Result<(), Failure> {
    let base = arguments.directory.join(format!("frond-engine-bench-{}", std::process::id()));
    fs::create_dir_all(&base)?;
    let done = run_in(arguments, &base);
    fs::remove_dir_all(&base)?;
    done
}

fn run_in(arguments: &Arguments, base: &Path) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut text = header(arguments, base)?;
    print!("{text}");
    let mut failed = false;
    for name in &arguments.workloads {
        let workload = find(name)?;
        let mut table = Table { title: workload.title.to_owned(), columns: Vec::new() };
        for target in &arguments.targets {
            eprint!("{name}: {target} ... ");
            let began = Instant::now();
            let outcome = measure_child(arguments, base, target, workload)?;
            failed |= matches!(outcome, Outcome::Failed(_));
            eprintln!("{:.1} s", began.elapsed().as_secs_f64());
            table.columns.push((target.clone(), outcome));
        }
        let table = table.markdown();
        print!("{table}");
        text.push_str(&table);
    }
    let load = fs::read_to_string("/proc/loadavg")?;
    let end = format!(
        "Load at the end: {}; {:.0} s in all.\n",
        load.trim(),
        begin.elapsed().as_secs_f64()
    );
    print!("{end}");
    text.push_str(&end);
    if let Some(path) = &arguments.output {
        fs::write(path, text)?;
    }
    if failed { Err("a target failed: see its table".into()) } else { Ok(()) }
}

/// Starts a process for one target and one workload, and waits for its figures.
fn measure_child(
    arguments: &Arguments,
    base: &Path,
    target: &str,
    workload: &Workload,
) -> Result<Outcome, Failure> {
    let (name, scale) = (workload.name, arguments.scale());
    let directory = base.join(format!("{name}-{target}"));
    fs::create_dir_all(&directory)?;
    let group = workload.memory_bytes.map(|bytes| MemoryGroup::new(bytes(&scale))).transpose()?;
    let group_path = group.iter().map(MemoryGroup::path);
    let is_short = arguments.insert_seconds.is_none() && !TARGETS_DECISIVE.contains(&target);
    let insert_time = match is_short {
        true => scale.insert_time.min(INSERT_TIME_OTHERS),
        false => scale.insert_time,
    };
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--child", "--targets", target, "--workloads", name])
        .args(group_path.flat_map(|path| [OsStr::new("--group"), path.as_os_str()]))
        .args(["--documents", &scale.documents.to_string()])
        .args(["--insert-seconds", &insert_time.as_secs_f64().to_string()])
        .args(["--rate-seconds", &scale.rate_time.as_secs_f64().to_string()])
        .args(["--records", &scale.records.to_string()])
        .args(["--scan-entries", &scale.scan_entries.to_string()])
        .args(["--version-entries", &scale.version_entries.to_string()])
        .args(option("--threads", scale.threads))
        .args(option("--cache-eighths", scale.cache_eighths))
        .arg("--directory")
        .arg(&directory)
        .stdout(Stdio::piped())
        .spawn()?;
    // The child's output fits into a pipe's buffer, so it is read when the process has ended.
    let deadline = Instant::now() + insert_time + PATIENCE;
    let ended = loop {
        if child.try_wait()?.is_some() {
            break true;
        }
        if Instant::now() > deadline {
            child.kill()?;
            break false;
        }
        std::thread::sleep(POLL);
    };
    let output = child.wait_with_output()?;
    fs::remove_dir_all(&directory)?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(if !ended {
        Outcome::Failed("ended after too long".to_owned())
    } else if !output.status.success() {
        Outcome::Failed(format!("{}", output.status))
    } else if text.trim() == NOT_RUN {
        Outcome::NotRun
    } else {
        Outcome::Measured(Figures::decode(&text))
    })
}

/// An option of the command line, if it has a value.
fn option(name: &str, value: Option<u64>) -> impl Iterator<Item = String> {
    value.into_iter().flat_map(move |value| [name.to_owned(), value.to_string()])
}

/// Returns the heading: what ran, and on which machine.
fn header(arguments: &Arguments, base: &Path) -> Result<String, Failure> {
    let field = |path: &str, name: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let processors = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg")?;
    let sync = measure::sync_probe_micros(base)?;
    let [new, old] = measure::memory_probe_seconds(base)?;
    let mut text = format!(
        "- **Machine**: {} ({processors} processors), {} of memory, Linux {}\n\
         - **Disk**: 4 KB appended and synced take {sync:.0} µs (median)\n\
         - **Memory**: a GB written to a file takes {new:.2} s of processor time in pages that are new, {old:.2} in pages that it has\n\
         - **Load before**: {}\n\
         - **Scale**: {:?}\n",
        field("/proc/cpuinfo", "model name"),
        field("/proc/meminfo", "MemTotal"),
        kernel.trim(),
        load.trim(),
        arguments.scale(),
    );
    for name in &arguments.targets {
        let directory = base.join(format!("header-{name}"));
        fs::create_dir_all(&directory)?;
        let settings = Settings::new(&directory, 1, 8 << 20);
        let description = targets::open(name, &settings)?.map(|target| target.description());
        fs::remove_dir_all(&directory)?;
        let description = description.unwrap_or_else(|| NOT_RUN.to_owned());
        text.push_str(&format!("- **{name}**: {description}\n"));
    }
    text.push('\n');
    Ok(text)
}
