//! The command line.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::compare;
use crate::report;
use crate::results::Results;
use crate::runner::{self, Plan};
use crate::scale::Scale;
use crate::target::Failure;
use crate::targets::managed::relay;
use crate::targets::{self, Places};
use crate::workload::Parameters;
use crate::workloads;

const EXAMPLES: &str = "\
Examples:
  docbench list                                        what can be measured, and on what
  docbench run --scale smoke --targets sqlite          a first look, in seconds
  docbench run --managed --scale small --out r.jsonl   all workloads on all that is installed
  docbench run ycsb --targets mine,postgres --managed \\
      --uri mine=mongodb://127.0.0.1:27017/            a server of yours beside a PostgreSQL of ours
  docbench report r.jsonl -o report.html               tables and plots, one file
  docbench compare before.jsonl after.jsonl            what has changed, with intervals

What isn't installed is told as \"not run\", with the reason. Each workload runs on each target several
times, on an empty database, and each answer that counts is checked: a wrong one disqualifies.";

/// Measures document databases by five published workloads, with results that bear scrutiny
#[derive(Parser)]
#[command(name = "docbench", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Measure, and write the results as JSON lines
    Run(Run),
    /// Make one HTML file of results: a summary, plots, all figures
    Report(Report),
    /// Compare two results files, such as before and after a change, with intervals
    Compare(Compare),
    /// List workloads and targets, and say which targets would run here
    List(List),
    /// Pass on what comes at a port of loopback to another one, each way after a delay
    #[command(hide = true)]
    Relay(Relay),
}

/// What targets are found by.
#[derive(Args)]
pub struct PlaceArguments {
    /// Start servers that are installed, on loopback, each with the same cache and durability
    #[arg(long)]
    managed: bool,
    /// Where a program is that isn't on the path, such as dolt=/opt/dolt/bin/dolt
    #[arg(long, value_name = "NAME=PATH", value_parser = pair)]
    peer_bin: Vec<(String, String)>,
    /// A server that runs already, such as mongodb=mongodb://127.0.0.1:27017/; its data in the
    /// database docbench are replaced
    #[arg(long, value_name = "NAME=URI", value_parser = pair)]
    uri: Vec<(String, String)>,
}

impl PlaceArguments {
    fn places(&self) -> Places {
        let programs = self.peer_bin.iter().cloned();
        Places {
            managed: self.managed,
            programs: programs.map(|(name, path)| (name, PathBuf::from(path))).collect(),
            uris: self.uri.iter().cloned().collect::<BTreeMap<_, _>>(),
        }
    }

    /// All that needs no address, and all that has one.
    fn default_targets(&self) -> Vec<String> {
        let known = targets::KNOWN.iter().map(|known| known.name.to_owned());
        let given = self.uri.iter().map(|(name, _)| name.clone());
        let given = given.filter(|name| targets::KNOWN.iter().all(|known| known.name != name));
        known.chain(given).collect()
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.into(), value.into()))
        }
        _ => Err("must be NAME=VALUE".into()),
    }
}

/// `docbench run`
#[derive(Args)]
pub struct Run {
    /// Which workloads; all if none is named
    workloads: Vec<String>,
    /// Which databases, separated by commas; all that are known if left out
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
    /// How much
    #[arg(long, value_enum, default_value_t = Scale::Smoke)]
    scale: Scale,
    #[command(flatten)]
    places: PlaceArguments,
    /// The results file, JSON lines
    #[arg(long, short, default_value = "docbench.jsonl")]
    out: PathBuf,
    /// How often each workload runs on each target; the scale's own number if left out
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// Leave out repetitions after the first that would end later; the scale's own if left out
    /// (small: 33)
    #[arg(long)]
    minutes: Option<u64>,
    /// From which all random numbers follow
    #[arg(long, default_value_t = 20_261_121)]
    seed: u64,
    /// A number in place of the scale's own: cache-mb, delay-us (what each way over the network
    /// takes: to servers that are started, and between those of a set), ycsb.records,
    /// .clients-max, .clients-shown and .connections, indexed-insert.documents, .seconds and
    /// .cache-mb, tpcc.warehouses, tpcc.clients=1+8+32, tpcc.seconds
    #[arg(long, value_name = "NAME=NUMBER", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Measure targets too that don't sync each write
    #[arg(long)]
    any_durability: bool,
    /// Where data directories are made and removed; must be on a real disk
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
}

impl Run {
    /// Runs; the exit code says whether all answers were right.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let mut chosen = Vec::new();
        for name in &self.workloads {
            let found = workloads::find(name);
            chosen.push(found.ok_or_else(|| {
                Failure::Other(format!("no workload is called {name}: see docbench list"))
            })?);
        }
        if chosen.is_empty() {
            chosen = workloads::ALL.to_vec();
        }
        let targets = if self.targets.is_empty() {
            self.places.default_targets()
        } else {
            self.targets.clone()
        };
        let plan = Plan {
            workloads: chosen,
            targets,
            scale: self.scale,
            parameters: Parameters(self.set.iter().cloned().collect()),
            repetitions: self.repetitions.unwrap_or(self.scale.repetitions()),
            time_max: self
                .minutes
                .or(self.scale.minutes())
                .map(|minutes| Duration::from_secs(minutes * 60)),
            seed: self.seed,
            places: self.places.places(),
            any_durability: self.any_durability,
            directory: self.directory,
            out: self.out,
        };
        let outcome = runner::run(&plan)?;
        eprintln!(
            "{}: {} rows wrong or failed, {} not run",
            plan.out.display(),
            outcome.faults,
            outcome.not_run
        );
        Ok(if outcome.faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// `docbench list`
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    places: PlaceArguments,
}

impl List {
    /// Prints what there is.
    pub fn run(self) -> Result<ExitCode, Failure> {
        println!("Workloads:");
        for workload in workloads::ALL {
            println!("  {:<16} {}", workload.name(), workload.title());
            println!("  {:<16} after {}", "", workload.original().source);
        }
        println!("\nTargets:");
        let places = self.places.places();
        for name in self.places.default_targets() {
            let known = targets::KNOWN.iter().find(|known| known.name == name);
            let title = known.map_or("by its address", |known| known.title);
            let state = match targets::would_start(&name, &places) {
                Ok(how) => how,
                Err(failure) => format!("not run: {failure}"),
            };
            println!("  {name:<16} {title}\n  {:<16} {state}", "");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `docbench report`
#[derive(Args)]
pub struct Report {
    /// Results files, JSON lines; several make one report if no figure stands in two of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The page
    #[arg(long, short, default_value = "report.html")]
    out: PathBuf,
    /// The database with which the others are compared: frond if it was measured, or else the first
    /// one
    #[arg(long)]
    subject: Option<String>,
}

impl Report {
    /// Writes the page.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let files: Result<Vec<Results>, Failure> =
            self.files.iter().map(|file| Results::read(file)).collect();
        let page = report::html(&files?, self.subject.as_deref())?;
        std::fs::write(&self.out, page)
            .map_err(|error| Failure::Other(format!("{}: {error}", self.out.display())))?;
        eprintln!("{}", self.out.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// `docbench compare`
#[derive(Args)]
pub struct Compare {
    /// The results before
    before: PathBuf,
    /// The results after
    after: PathBuf,
    /// List what is inside the noise too
    #[arg(long)]
    all: bool,
    /// Exit with 1 if anything is worse outside the noise
    #[arg(long)]
    check: bool,
}

impl Compare {
    /// Prints the table.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (before, after) = (Results::read(&self.before)?, Results::read(&self.after)?);
        let comparison = compare::compare(&before, &after, self.all);
        print!("{}", comparison.text);
        Ok(if self.check && comparison.worse > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// `docbench relay`
#[derive(Args)]
pub struct Relay {
    from: u16,
    to: u16,
    microseconds: u64,
}

impl Relay {
    /// Runs until it is stopped.
    pub fn run(self) -> Result<ExitCode, Failure> {
        relay::run(self.from, self.to, Duration::from_micros(self.microseconds))
    }
}
