//! The host of a request's scripts: a process of their own, where the program says which
//! ([`run_in`](crate::run_in)); otherwise a thread of this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ScriptError;
use crate::engine::Engine;
use crate::message::{Answers, Batch};
use crate::processes::{self, Worker};
use crate::threads::{self, JobFailure};

/// The place where the scripts of one request run. Nothing global, no prototype or cache outlives
/// it.
///
/// After calls that were to stop or ended its place there is none for the next.
#[derive(Debug)]
pub struct ScriptHost(Option<Kind>);

#[derive(Debug)]
enum Kind {
    Process(Worker),
    Thread(Engine, Arc<AtomicBool>),
}

impl ScriptHost {
    /// A new one.
    ///
    /// # Errors
    /// [`ScriptError::OutOfMemory`], [`ScriptError::Ended`].
    pub fn new() -> Result<ScriptHost, ScriptError> {
        let kind = match processes::program() {
            Some(program) => Kind::Process(Worker::take(program)?),
            None => {
                let stop = Arc::new(AtomicBool::new(false));
                let stopped = Arc::clone(&stop);
                let engine = Engine::new(Arc::new(move || !stopped.load(Ordering::Relaxed)))?;
                Kind::Thread(engine, stop)
            }
        };
        Ok(ScriptHost(Some(kind)))
    }

    /// Runs calls, or the first of them, for as long as `go_on` says so, and returns their answers.
    /// `charged` stands for the memory that the place is charged with: it is returned with the
    /// answers, or dropped when the place is gone.
    ///
    /// # Errors
    /// [`ScriptError::Interrupted`]; [`ScriptError::Ended`] if there is no place any more.
    pub fn run<C: Send + 'static>(
        &mut self,
        batch: &Batch<'_>,
        charged: C,
        go_on: impl Fn() -> bool,
    ) -> Result<(C, Answers), ScriptError> {
        let message = batch.write();
        match self.0.take().ok_or(ScriptError::Interrupted)? {
            Kind::Process(mut worker) => {
                let answers = worker.call(&message, &go_on)?;
                let answers = Answers::read(answers.view(), batch.calls.len());
                let answers = answers.ok_or(ScriptError::Ended)?;
                self.0 = Some(Kind::Process(worker));
                Ok((charged, answers))
            }
            Kind::Thread(engine, stop) => {
                let job = move || {
                    let batch = Batch::read(message.view()).expect("it was written so");
                    let answers = engine.answer(&batch);
                    (engine, charged, answers)
                };
                let ran = threads::run(&stop, go_on, job);
                let (engine, charged, answers) = ran.map_err(|not_run| match not_run {
                    JobFailure::Left => ScriptError::Interrupted,
                    JobFailure::Failed => ScriptError::Ended,
                })?;
                self.0 = Some(Kind::Thread(engine, stop));
                Ok((charged, answers))
            }
        }
    }
}

impl Drop for ScriptHost {
    fn drop(&mut self) {
        if let Some(Kind::Process(worker)) = self.0.take() {
            worker.give_back();
        }
    }
}
