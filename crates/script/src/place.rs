//! Where a request's scripts run: in a process of their own, where the program says which
//! ([`run_in`](crate::run_in)); otherwise on a thread of this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ScriptError;
use crate::engine::Engine;
use crate::message::{Answer, Call};
use crate::processes::{self, Worker};
use crate::threads::{self, NotRun};

/// Where the scripts of one request run. Nothing global, no prototype or cache outlives it.
///
/// After a call that was to stop or ended its place there is none for the next.
#[derive(Debug)]
pub struct Place(Option<Kind>);

#[derive(Debug)]
enum Kind {
    Process(Worker),
    Thread(Engine, Arc<AtomicBool>),
}

impl Place {
    /// A new one.
    ///
    /// # Errors
    /// [`ScriptError::OutOfMemory`], [`ScriptError::Ended`].
    pub fn new() -> Result<Place, ScriptError> {
        let kind = match processes::program() {
            Some(program) => Kind::Process(Worker::take(program)?),
            None => {
                let stop = Arc::new(AtomicBool::new(false));
                let told = Arc::clone(&stop);
                let engine = Engine::new(Arc::new(move || !told.load(Ordering::Relaxed)))?;
                Kind::Thread(engine, stop)
            }
        };
        Ok(Place(Some(kind)))
    }

    /// What becomes of a call, for as long as `go_on` says so. What the place's memory is charged
    /// with, `charged`, comes back, or goes when the place is gone.
    ///
    /// # Errors
    /// [`ScriptError::Interrupted`]; [`ScriptError::Ended`] if there is no place any more.
    pub fn run<C: Send + 'static>(
        &mut self,
        call: &Call<'_>,
        charged: C,
        go_on: impl Fn() -> bool,
    ) -> Result<(C, Answer), ScriptError> {
        let message = call.write();
        match self.0.take().ok_or(ScriptError::Interrupted)? {
            Kind::Process(mut worker) => {
                let answer = worker.ask(&message, &go_on)?;
                let answer = Answer::read(answer.view()).ok_or(ScriptError::Ended)?;
                self.0 = Some(Kind::Process(worker));
                Ok((charged, answer))
            }
            Kind::Thread(engine, stop) => {
                let job = move || {
                    let call = Call::read(message.view()).expect("it was written so");
                    let answer = engine.answer(&call);
                    (engine, charged, answer)
                };
                let ran = threads::run(&stop, go_on, job);
                let (engine, charged, answer) = ran.map_err(|not_run| match not_run {
                    NotRun::Left => ScriptError::Interrupted,
                    NotRun::Failed => ScriptError::Ended,
                })?;
                self.0 = Some(Kind::Thread(engine, stop));
                Ok((charged, answer))
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(Kind::Process(worker)) = self.0.take() {
            worker.give_back();
        }
    }
}
