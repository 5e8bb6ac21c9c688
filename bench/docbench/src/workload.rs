//! What is measured: one module for each workload in [`crate::workloads`].
//!
//! A [`Workload`] runs on one target at a time, once a repetition, on a database that was just started on an
//! empty directory. The runner interleaves targets and repeats; what the workload measures goes into the
//! [`Recorder`], which puts the repetitions together. A workload
//!
//! 1. loads its data (not timed, unless the load is what is measured);
//! 2. checks answers, and fails with [`Failure::Wrong`] where one is wrong: that disqualifies all its rows
//!    on this target;
//! 3. warms up, measures, and checks again what the measured time left behind.

use crate::progress::Progress;
use crate::results::Recorder;
use crate::scale::Scale;
use crate::target::{About, Capabilities, Failure, Target};

/// What a workload runs on.
pub enum Subjects {
    /// The databases that were asked for.
    Targets,
    /// Its own: formats, named so in the rows.
    Own(Vec<String>),
}

/// A publication's result, beside which ours stands in the report.
#[derive(Clone, Copy, Debug)]
pub struct Original {
    /// Who published it, where and when.
    pub source: &'static str,
    /// What they found, in a sentence with the numbers.
    pub finding: &'static str,
}

/// One of the published results.
pub trait Workload: Sync {
    /// Its name on the command line and in every row.
    fn name(&self) -> &'static str;

    /// A line: what it measures.
    fn title(&self) -> &'static str;

    /// Where it comes from.
    fn original(&self) -> Original;

    /// What it runs on.
    fn subjects(&self) -> Subjects {
        Subjects::Targets
    }

    /// Why it can't run on a target with these capabilities; `None` if it can.
    fn refuses(&self, capabilities: &Capabilities) -> Option<&'static str>;

    /// The database's cache, in bytes; the same for every target.
    fn cache_bytes(&self, _scale: Scale) -> u64 {
        256 << 20
    }

    /// Runs once on one subject.
    fn run(&self, context: &mut Context<'_>) -> Result<(), Failure>;
}

/// What a workload runs with.
pub struct Context<'a> {
    /// The target's name, or the own subject's.
    pub subject: &'a str,
    /// How much.
    pub scale: Scale,
    /// From 0.
    pub repetition: u32,
    /// From which all random numbers of this repetition follow; the same for every target.
    pub seed: u64,
    /// What is shown while it runs.
    pub progress: &'a Progress,
    /// Where figures go.
    pub recorder: &'a mut Recorder,
    /// The database; `None` for own subjects.
    pub database: Option<&'a dyn Target>,
}

impl<'a> Context<'a> {
    /// The database.
    pub fn target(&self) -> Result<&'a dyn Target, Failure> {
        self.database.ok_or_else(|| Failure::Other("this workload has no database".into()))
    }

    /// What the database is.
    pub fn about(&self) -> Result<&'a About, Failure> {
        Ok(self.target()?.about())
    }
}
