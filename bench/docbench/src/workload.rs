//! Workloads: one module for each in [`crate::workloads`].
//!
//! A [`Workload`] runs on one target at a time, once a repetition, on a database that was just
//! started on an empty directory. The runner interleaves targets and repeats; the workload's
//! measurements go into the [`Recorder`], which puts the repetitions together. A workload
//!
//! 1. loads its data (not timed, unless the load is what is measured);
//! 2. checks answers, and fails with [`Failure::Wrong`] where one is wrong: that disqualifies all
//!    its rows on this target;
//! 3. warms up, measures, and checks again what the measured time left behind.

use std::collections::BTreeMap;

use crate::drive::{Measured, Span};
use crate::machine;
use crate::progress::Progress;
use crate::results::{Better, Case, Recorder};
use crate::scale::Scale;
use crate::target::{Capabilities, Failure, Target};

/// The metric that is the processor time of a database's processes, for an operation.
pub const CPU_OF_SERVER: &str = "cpu_an_operation";
/// The same of the generator's process with the client's library, where the database is another
/// one.
pub const CPU_OF_CLIENT: &str = "client_cpu_an_operation";

/// The subjects that a workload runs on.
pub enum Subjects {
    /// The databases that were asked for.
    Targets,
    /// Its own: formats, named so in the rows.
    Own(Vec<String>),
}

/// A publication's result, beside which ours stands in the report.
#[derive(Clone, Copy, Debug)]
pub struct Original {
    /// The authors, the place and the year of publication.
    pub source: &'static str,
    /// Their finding, in a sentence with the numbers.
    pub finding: &'static str,
}

/// The values of `--set NAME=VALUE`, in place of a scale's own numbers, such as
/// `tpcc.warehouses=8`.
#[derive(Clone, Debug, Default)]
pub struct Parameters(pub BTreeMap<String, String>);

impl Parameters {
    /// The number called `name`, or the scale's own.
    pub fn number(&self, name: &str, own: u64) -> Result<u64, Failure> {
        match self.0.get(name) {
            Some(text) => text
                .parse()
                .map_err(|_| Failure::Other(format!("--set {name}={text}: not a number"))),
            None => Ok(own),
        }
    }

    /// The numbers called `name`, joined by `+`, or the scale's own.
    pub fn numbers(&self, name: &str, own: &[u64]) -> Result<Vec<u64>, Failure> {
        let Some(text) = self.0.get(name) else {
            return Ok(own.to_vec());
        };
        let numbers: Result<Vec<u64>, _> = text.split('+').map(str::parse).collect();
        numbers.map_err(|_| Failure::Other(format!("--set {name}={text}: not numbers joined by +")))
    }
}

/// One of the published results.
pub trait Workload: Sync {
    /// Its name on the command line and in every row.
    fn name(&self) -> &'static str;

    /// A line: what it measures.
    fn title(&self) -> &'static str;

    /// Returns where it comes from.
    fn original(&self) -> Original;

    /// Returns the subjects that it runs on.
    fn subjects(&self) -> Subjects {
        Subjects::Targets
    }

    /// Returns why it can't run on a target with these capabilities; `None` if it can.
    fn refuses(&self, capabilities: &Capabilities) -> Option<&'static str>;

    /// The database's cache, in bytes; the same for every target.
    fn cache_bytes(&self, _scale: Scale, parameters: &Parameters) -> Result<u64, Failure> {
        Ok(parameters.number("cache-mb", 256)? << 20)
    }

    /// Runs once on one subject.
    fn run(&self, context: &mut Context<'_>) -> Result<(), Failure>;
}

/// The part of a workload that runs once its target was started again with nothing in memory.
pub type Cold = Box<dyn FnOnce(&mut Context<'_>) -> Result<(), Failure>>;

/// The surroundings of a running workload.
pub struct Context<'a> {
    /// The target's name, or the own subject's.
    pub subject: &'a str,
    /// The scale.
    pub scale: Scale,
    /// The numbers that were set in place of the scale's own.
    pub parameters: &'a Parameters,
    /// The seed from which all random numbers of this repetition follow; the same for every target.
    pub seed: u64,
    /// The progress that is shown while it runs.
    pub progress: &'a Progress,
    /// The recorder of figures.
    pub recorder: &'a mut Recorder,
    /// The database; `None` for own subjects.
    pub database: Option<&'a dyn Target>,
    /// A part of the workload that is run after it, on the same data: the target is stopped, the
    /// operating system's caches are dropped, and the target is started again. "Not run" where the
    /// caches can't be dropped, and on a server that we didn't start.
    pub cold: Option<Cold>,
}

impl<'a> Context<'a> {
    /// The database.
    pub fn target(&self) -> Result<&'a dyn Target, Failure> {
        self.database.ok_or_else(|| Failure::Other("this workload has no database".into()))
    }

    /// Runs `work`, a load under `case`, and records it, with the processor time of the database's
    /// processes, and of this one (which has an embedded database in it, so that there is one
    /// figure of both).
    pub fn load(
        &mut self,
        case: &Case,
        span: &Span,
        work: impl FnOnce() -> Result<Measured, Failure>,
    ) -> Result<Measured, Failure> {
        let (servers, client) = (self.target()?.processes(), [std::process::id()]);
        let now = || (machine::cpu_seconds(&servers), machine::cpu_seconds(&client));
        let before = now();
        let measured = work()?;
        let after = now();
        self.recorder.load(self.subject, case, span, &measured);
        let all: u64 = measured.series.iter().sum();
        let case = case.clone().detail();
        let mut record = |metric: &str, seconds: f64| {
            let (unit, micros) = (("µs", Better::Lower), seconds * 1e6 / all.max(1) as f64);
            self.recorder.value(self.subject, &case, metric, unit, micros);
        };
        if !servers.is_empty() {
            record(CPU_OF_SERVER, after.0 - before.0);
        }
        if !servers.contains(&client[0]) {
            record(CPU_OF_CLIENT, after.1 - before.1);
        }
        Ok(measured)
    }
}
