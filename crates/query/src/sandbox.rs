//! Where a request's scripts run, and what that is charged with.
//!
//! The engine is made for the first script, and goes with the request: nothing is left for another.
//! While a script runs, as much is reserved as its values may take at most and what it hands out;
//! between calls what the values do take, which is measured now and then. A call that outlasts its
//! request is left behind, with the engine and what is reserved for it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use frond_doc::DocumentBuf;
use frond_script::threads::{self, NotRun};
use frond_script::{Engine, HEAP_BYTES_MAX, RESULT_BYTES_MAX, ScriptError};
use frond_store::budget::Reservation;

use crate::code::Code;
use crate::error::{QueryError, failure};

/// What an engine takes before it has run anything: measured.
const ENGINE_BYTES: usize = 1 << 20;
/// Measuring walks over all values of scripts, some thousands, and so is done ever more seldom, and
/// then for each so many calls.
const CALLS_MEASURED: usize = 256;

/// Asks whether to go on.
type GoOn = dyn Fn() -> Result<(), QueryError> + Send + Sync;

/// The engine of a request's scripts.
pub(crate) struct Sandbox {
    /// None once a call was left behind with it.
    inside: Option<Inside>,
    /// Tells a call to stop.
    stop: Arc<AtomicBool>,
    go_on: Option<Arc<GoOn>>,
}

/// What goes with a call to its thread.
struct Inside {
    engine: Engine,
    reservation: Reservation,
    standing_bytes: usize,
    calls: usize,
    has_globals: bool,
}

impl Sandbox {
    /// A new engine. `reservation` is its own.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn new(
        mut reservation: Reservation,
        go_on: Option<Arc<GoOn>>,
    ) -> Result<Sandbox, QueryError> {
        reservation.hold(ENGINE_BYTES).map_err(|exceeded| too_much(&exceeded.to_string()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let engine = Engine::new(Arc::new(move || !told.load(Ordering::Relaxed)));
        let engine = engine.map_err(|error| of_script(&error))?;
        let (standing_bytes, calls, has_globals) = (ENGINE_BYTES, 0, false);
        let inside = Inside { engine, reservation, standing_bytes, calls, has_globals };
        Ok(Sandbox { inside: Some(inside), stop, go_on })
    }

    /// Calls a script; `globals` count if nothing was global before.
    ///
    /// # Errors
    /// What the script failed with, or the request is to fail with; `ExceededMemoryLimit`.
    pub(crate) fn run<T: Send + 'static>(
        &mut self,
        globals: Option<&DocumentBuf>,
        call: impl FnOnce(&Engine) -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, QueryError> {
        let Some(inside) = &mut self.inside else {
            return Err(of_script(&ScriptError::Interrupted));
        };
        let most = inside.standing_bytes + HEAP_BYTES_MAX + RESULT_BYTES_MAX;
        inside.reservation.hold(most).map_err(|exceeded| too_much(&exceeded.to_string()))?;
        let globals = globals.filter(|_| !inside.has_globals).cloned();
        let stopped_by = Cell::new(None);
        let go_on = || {
            let asked = self.go_on.as_ref().map_or(Ok(()), |go_on| go_on());
            asked.map_err(|error| stopped_by.set(Some(error))).is_ok()
        };
        let inside = self.inside.take().expect("looked at above");
        let ran = threads::run(&self.stop, go_on, move || inside.call(globals, call));
        let (stopped_by, result) = match ran {
            Ok((inside, result)) => {
                self.inside = Some(inside);
                (stopped_by.take(), result)
            }
            Err(NotRun::Left) => (stopped_by.take(), Err(ScriptError::Interrupted)),
            Err(NotRun::Failed) => (None, Err(ScriptError::OutOfMemory)),
        };
        result.map_err(|error| stopped_by.unwrap_or_else(|| of_script(&error)))
    }
}

impl Inside {
    /// Runs on a thread of scripts.
    fn call<T>(
        mut self,
        globals: Option<DocumentBuf>,
        call: impl FnOnce(&Engine) -> Result<T, ScriptError>,
    ) -> (Inside, Result<T, ScriptError>) {
        let set = match &globals {
            Some(globals) => self.engine.set_globals(globals.view()),
            None => Ok(()),
        };
        self.has_globals |= globals.is_some();
        let result = set.and_then(|()| call(&self.engine));
        self.calls += 1;
        if self.calls.is_power_of_two() || self.calls.is_multiple_of(CALLS_MEASURED) {
            self.standing_bytes = self.engine.heap_bytes().max(ENGINE_BYTES);
        }
        self.reservation.shrink(self.standing_bytes);
        (self, result)
    }
}

/// Where the request may run no scripts.
pub(crate) fn disabled() -> QueryError {
    failure(31264, "Cannot run server-side javascript without the javascript engine enabled")
}

fn too_much(exceeded: &str) -> QueryError {
    let message = format!("server-side JavaScript exceeded memory limit of {exceeded}");
    QueryError::new(Code::ExceededMemoryLimit, message)
}

fn of_script(error: &ScriptError) -> QueryError {
    let code = match error {
        ScriptError::Thrown(_) | ScriptError::OutOfMemory => Code::JSInterpreterFailure,
        ScriptError::Interrupted => Code::Interrupted,
        ScriptError::TooLarge => Code::BSONObjectTooLarge,
        ScriptError::NoBson(code, _) => Code::of(*code),
    };
    QueryError::new(code, error.to_string())
}
