//! Runs workloads on targets: interleaved, repeated, each on a fresh database.
//!
//! For each workload, for each repetition, for each target (each repetition begins with another
//! one):
//!
//! 1. an empty directory is made and the target is started on it;
//! 2. the first time, the target's [`About`](crate::target::About) goes into the results, with the
//!    check that acknowledged writes are synced ([`crate::sync_check`]);
//! 3. the workload runs; a failure ends the target's part in this workload, not the run;
//! 4. the target is stopped; if the workload asks for it, the system's caches are dropped, the
//!    target is started again on its data, and the workload's cold part runs (not on a server that
//!    was given by its address: we neither stop it nor start it, and connecting empties it);
//! 5. the directory is removed.
//!
//! After the last repetition the workload's rows are written. Where a time for the whole run is
//! set, each workload has an equal part of it, what earlier ones left over included: repetitions
//! after the first that would begin later are left out, for all targets alike, and the rows have
//! fewer samples. One durability stands in a results file: a target with another one is "not run".

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::machine;
use crate::noop;
use crate::progress::Progress;
use crate::random::Random;
use crate::results::{Case, End, Line, Recorder, RunHeader, SCHEMA, Status, TargetLine, Writer};
use crate::scale::Scale;
use crate::sync_check;
use crate::target::{Durability, Failure, Target};
use crate::targets::{self, Places, Settings};
use crate::workload::{Cold, Context, Parameters, Subjects, Workload};

/// The plan of a run.
pub struct Plan {
    /// The workloads in order.
    pub workloads: Vec<&'static dyn Workload>,
    /// The targets in order.
    pub targets: Vec<String>,
    /// The scale.
    pub scale: Scale,
    /// The numbers that were set in place of the scale's own.
    pub parameters: Parameters,
    /// The number of repetitions.
    pub repetitions: u32,
    /// Repetitions after the first are left out beyond this.
    pub time_max: Option<Duration>,
    /// The seed from which all random numbers follow.
    pub seed: u64,
    /// The places of targets.
    pub places: Places,
    /// Whether targets of unknown durability are measured too.
    pub any_durability: bool,
    /// The directory in which data directories are made.
    pub directory: PathBuf,
    /// The results file.
    pub out: PathBuf,
}

/// The outcome of a run.
pub struct Outcome {
    /// Rows with a wrong answer or a failure.
    pub faults: u64,
    /// Targets and workloads that were not run.
    pub not_run: u64,
}

/// Runs everything.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let base = plan.directory.join(format!("docbench-{}", std::process::id()));
    std::fs::create_dir_all(&base)?;
    let done = Run::begin(plan, &base).and_then(Run::all);
    // A directory that could not be removed is reported, and harms no other run.
    if let Err(error) = std::fs::remove_dir_all(&base) {
        eprintln!("{} stays: {error}", base.display());
    }
    done
}

struct Run<'a> {
    plan: &'a Plan,
    base: &'a Path,
    writer: Writer,
    progress: Progress,
    flushes_counted: bool,
    introduced: BTreeSet<String>,
    outcome: Outcome,
    began: Instant,
    started_count: u64,
}

impl<'a> Run<'a> {
    fn begin(plan: &'a Plan, base: &'a Path) -> Result<Run<'a>, Failure> {
        let began = Instant::now();
        let mut writer = Writer::create(&plan.out)?;
        eprintln!("measuring the disk and the generator ...");
        let flushes_counted = machine::counts_flushes(base);
        writer.line(&Line::Run(header(plan, base, flushes_counted)?))?;
        let subjects = |workload: &&dyn Workload| match workload.subjects() {
            Subjects::Targets => plan.targets.len(),
            Subjects::Own(names) => names.len(),
        };
        let steps: usize = plan.workloads.iter().map(subjects).sum();
        Ok(Run {
            plan,
            base,
            writer,
            progress: Progress::new(steps as u64 * u64::from(plan.repetitions)),
            flushes_counted,
            introduced: BTreeSet::new(),
            outcome: Outcome { faults: 0, not_run: 0 },
            began,
            started_count: 0,
        })
    }

    fn all(mut self) -> Result<Outcome, Failure> {
        for (position, workload) in self.plan.workloads.iter().enumerate() {
            let mut recorder = Recorder::new(workload.name());
            for repetition in 0..self.plan.repetitions {
                if repetition > 0 && self.is_late(position) {
                    let text = format!("{}: the time is over after {repetition}", workload.name());
                    self.progress.note(&text);
                    break;
                }
                self.repetition(*workload, repetition, &mut recorder)?;
            }
            for row in recorder.finish()? {
                match row.status {
                    Status::Ok => {}
                    Status::NotRun => self.outcome.not_run += 1,
                    Status::Wrong | Status::Failed => self.outcome.faults += 1,
                }
                if row.metric.is_empty() {
                    let reason = row.reason.clone().unwrap_or_default();
                    let (workload, target) = (&row.workload, &row.target);
                    self.progress
                        .note(&format!("{workload} on {target}: {:?}: {reason}", row.status));
                }
                self.writer.line(&Line::Row(row))?;
            }
        }
        self.progress.finish();
        self.writer.line(&Line::End(End {
            seconds: self.began.elapsed().as_secs_f64(),
            load: machine::load(),
            faults: self.outcome.faults,
        }))?;
        Ok(self.outcome)
    }

    /// Whether the workload at `position` has had its part of the time, and those before it theirs.
    fn is_late(&self, position: usize) -> bool {
        let count = self.plan.workloads.len() as f64;
        self.plan.time_max.is_some_and(|time_max| {
            self.began.elapsed() > time_max.mul_f64((position + 1) as f64 / count)
        })
    }

    fn repetition(
        &mut self,
        workload: &dyn Workload,
        repetition: u32,
        recorder: &mut Recorder,
    ) -> Result<(), Failure> {
        let (names, are_targets) = match workload.subjects() {
            Subjects::Targets => (self.plan.targets.clone(), true),
            Subjects::Own(names) => (names, false),
        };
        for position in 0..names.len() {
            // Each repetition begins with another one, so that none is always the first.
            let name = &names[(position + repetition as usize) % names.len()];
            self.progress.step(&format!(
                "{} on {name}, repetition {} of {}",
                workload.name(),
                repetition + 1,
                self.plan.repetitions
            ));
            if !recorder.has_fault(name) {
                let done = if are_targets {
                    self.on_target(workload, name, repetition, recorder)
                } else {
                    workload.run(&mut self.context(name, repetition, recorder, None))
                };
                if let Err(failure) = done {
                    recorder.fault(name, &failure);
                }
            }
            self.progress.stepped();
        }
        Ok(())
    }

    /// Starts the target, runs the workload on it, stops it.
    fn on_target(
        &mut self,
        workload: &dyn Workload,
        name: &str,
        repetition: u32,
        recorder: &mut Recorder,
    ) -> Result<(), Failure> {
        self.started_count += 1;
        let directory = self.base.join(format!("{}-{name}", self.started_count));
        std::fs::create_dir_all(&directory)?;
        let cache_bytes = workload.cache_bytes(self.plan.scale, &self.plan.parameters)?;
        let delay = Duration::from_micros(self.plan.parameters.number("delay-us", 0)?);
        let settings = Settings { directory: &directory, cache_bytes, delay };
        let started = targets::start(name, &self.plan.places, &settings);
        let done = match started {
            Ok(target) => {
                let done = self.measure(workload, name, repetition, recorder, &*target);
                drop(target);
                done.and_then(|cold| match cold {
                    Some(cold) => self.cold(cold, name, repetition, recorder, &settings),
                    None => Ok(()),
                })
            }
            Err(failure) => {
                self.introduce(TargetLine {
                    name: name.into(),
                    status: Status::NotRun,
                    reason: Some(failure.to_string()),
                    about: None,
                    flushes_a_write: None,
                    write_micros: None,
                })?;
                Err(failure)
            }
        };
        std::fs::remove_dir_all(&directory)?;
        done
    }

    fn measure(
        &mut self,
        workload: &dyn Workload,
        name: &str,
        repetition: u32,
        recorder: &mut Recorder,
        target: &dyn Target,
    ) -> Result<Option<Cold>, Failure> {
        let about = target.about();
        let checked = if self.introduced.contains(name) {
            Ok(())
        } else {
            let found = sync_check::check(target, self.base, self.flushes_counted)?;
            self.introduce(TargetLine {
                name: name.into(),
                status: Status::Ok,
                reason: None,
                about: Some(serde_json::to_value(about)?),
                flushes_a_write: found.flushes_a_write,
                write_micros: Some(found.write_micros),
            })?;
            found.verdict(about.durability)
        };
        checked?;
        if about.durability == Durability::Relaxed && !self.plan.any_durability {
            let reason = "it doesn't sync each write, and one durability stands in a table";
            return Err(Failure::Unsupported(reason.into()));
        }
        if let Some(reason) = workload.refuses(&about.capabilities) {
            return Err(Failure::Unsupported(reason.into()));
        }
        let mut context = self.context(name, repetition, recorder, Some(target));
        workload.run(&mut context)?;
        Ok(context.cold)
    }

    /// Runs a workload's cold part on the data that a stopped target left.
    fn cold(
        &self,
        cold: Cold,
        name: &str,
        repetition: u32,
        recorder: &mut Recorder,
        settings: &Settings<'_>,
    ) -> Result<(), Failure> {
        let is_ours = !self.plan.places.uris.contains_key(name);
        let prepared = match is_ours {
            true => machine::drop_caches()
                .map_err(|error| format!("the system's caches can't be dropped: {error}")),
            false => Err("docbench can't restart a server that it didn't start".into()),
        };
        if let Err(reason) = prepared {
            recorder.not_run(name, &Case::new().with("caches", "cold"), "read", &reason);
            return Ok(());
        }
        let target = targets::start(name, &self.plan.places, settings)?;
        cold(&mut self.context(name, repetition, recorder, Some(&*target)))
    }

    fn context<'c>(
        &'c self,
        name: &'c str,
        repetition: u32,
        recorder: &'c mut Recorder,
        database: Option<&'c dyn Target>,
    ) -> Context<'c> {
        Context {
            subject: name,
            scale: self.plan.scale,
            parameters: &self.plan.parameters,
            seed: Random::of(self.plan.seed, &[u64::from(repetition)]).next(),
            progress: &self.progress,
            recorder,
            database,
            cold: None,
        }
    }

    fn introduce(&mut self, line: TargetLine) -> Result<(), Failure> {
        if self.introduced.insert(line.name.clone()) {
            self.writer.line(&Line::Target(line))?;
        }
        Ok(())
    }
}

fn header(plan: &Plan, base: &Path, flushes_counted: bool) -> Result<RunHeader, Failure> {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let started = started.map_err(Failure::other)?.as_secs();
    let started_millis = i64::try_from(started).map_err(Failure::other)? * 1_000;
    let mut fsync_probe_micros = Vec::new();
    for _ in 0..3 {
        fsync_probe_micros.push(machine::sync_probe_micros(base)?);
    }
    Ok(RunHeader {
        schema: SCHEMA,
        docbench: env!("CARGO_PKG_VERSION").into(),
        commit: machine::commit(),
        started,
        started_utc: bson::DateTime::from_millis(started_millis)
            .try_to_rfc3339_string()
            .map_err(Failure::other)?,
        command: std::env::args().collect(),
        scale: plan.scale.name().into(),
        repetitions: plan.repetitions,
        seed: plan.seed,
        workloads: plan.workloads.iter().map(|workload| workload.name().into()).collect(),
        targets: plan.targets.clone(),
        durability: if plan.any_durability { "as each has it" } else { "synced" }.into(),
        machine: machine::machine(base),
        fsync_probe_micros,
        flushes_counted,
        generator: noop::cost(plan.scale)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_ours_has_no_cold_part() {
        let base = std::env::temp_dir().join(format!("docbench-not-ours-{}", std::process::id()));
        std::fs::create_dir_all(&base).expect("a directory can be made");
        // Nothing listens there: connecting would fail.
        let uri = ("mine".to_owned(), "mongodb://127.0.0.1:1/".to_owned());
        let plan = Plan {
            workloads: Vec::new(),
            targets: vec!["mine".into()],
            scale: Scale::Smoke,
            parameters: Parameters::default(),
            repetitions: 1,
            time_max: None,
            seed: 1,
            places: Places { uris: [uri].into(), ..Places::default() },
            any_durability: false,
            directory: base.clone(),
            out: base.join("results.jsonl"),
        };
        let run = Run::begin(&plan, &base).expect("the disk can be measured");
        let mut recorder = Recorder::new("w");
        let cold: Cold = Box::new(|_| Err(Failure::Wrong("its data are gone".into())));
        let settings = Settings { directory: &base, cache_bytes: 1 << 20, delay: Duration::ZERO };
        let done = run.cold(cold, "mine", 0, &mut recorder, &settings);
        drop(run);
        std::fs::remove_dir_all(&base).expect("the directory can be removed");
        done.expect("it isn't tried");
        let rows = recorder.finish().expect("there is no histogram");
        let outcomes: Vec<_> = rows.iter().map(|row| (row.status, row.reason.as_deref())).collect();
        let reason = "docbench can't restart a server that it didn't start";
        assert_eq!(outcomes, [(Status::NotRun, Some(reason))]);
    }
}
