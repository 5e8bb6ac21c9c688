//! DocBench: five published results about document databases, as one benchmark suite, on any
//! database.
//!
//!     docbench run --managed --scale small --out results.jsonl
//!     docbench report results.jsonl -o report.html
//!
//! Reading order: [`target`] and [`query`] (what a database is asked), [`workload`] (what is
//! measured), [`drive`] (how operations arrive), [`runner`] (in which order all happens),
//! [`results`] (what is written), [`targets`] and [`workloads`] (one module each). The method is in
//! `docs/benchmarks/`.

mod arguments;
mod compare;
#[cfg(all(test, feature = "sqlite"))]
mod defects;
mod drive;
mod machine;
mod noop;
mod progress;
mod query;
mod random;
mod ratio;
mod report;
mod results;
mod runner;
mod scale;
mod sql;
mod statistics;
mod sync_check;
mod target;
mod targets;
mod workload;
mod workloads;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

/// As in the `frond` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(run) => run.run(),
        Command::List(list) => list.run(),
        Command::Report(report) => report.run(),
        Command::Compare(compare) => compare.run(),
        Command::Relay(relay) => relay.run(),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("docbench: {failure}");
            ExitCode::FAILURE
        }
    }
}
