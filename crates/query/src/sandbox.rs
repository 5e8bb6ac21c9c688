//! Where a request's scripts run, and what that is charged with.
//!
//! The engine is made for the first script, and goes with the request: nothing is left for another.
//! While a script runs, as much is reserved as its values may take at most and what it hands out;
//! between calls what the values do take, which is measured now and then.

use std::sync::{Arc, Mutex, PoisonError};

use frond_doc::Document;
use frond_script::{Engine, HEAP_BYTES_MAX, RESULT_BYTES_MAX, ScriptError};
use frond_store::budget::Reservation;

use crate::code::Code;
use crate::error::{QueryError, failure};

/// What an engine takes before it has run anything: measured.
const ENGINE_BYTES: usize = 1 << 20;
/// Measuring walks over all values of scripts, some thousands, and so is done for each so many
/// calls.
const CALLS_MEASURED: usize = 256;

/// Asks whether to go on.
type GoOn = dyn Fn() -> Result<(), QueryError> + Send + Sync;

/// The engine of a request's scripts.
pub(crate) struct Sandbox {
    engine: Engine,
    /// With what the request is to fail, once a script was told to stop.
    stopped_by: Arc<Mutex<Option<QueryError>>>,
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
        let stopped_by = Arc::new(Mutex::new(None));
        let told = Arc::clone(&stopped_by);
        let ask = move || {
            let Some(Err(error)) = go_on.as_ref().map(|go_on| go_on()) else { return true };
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            false
        };
        let engine = Engine::new(Arc::new(ask)).map_err(|error| of_script(&error))?;
        Ok(Sandbox {
            engine,
            stopped_by,
            reservation,
            standing_bytes: ENGINE_BYTES,
            calls: 0,
            has_globals: false,
        })
    }

    /// Calls a script; `globals` count if nothing was global before.
    ///
    /// # Errors
    /// What the script failed with; `ExceededMemoryLimit`.
    pub(crate) fn run<T>(
        &mut self,
        globals: Option<Document<'_>>,
        call: impl FnOnce(&Engine) -> Result<T, ScriptError>,
    ) -> Result<T, QueryError> {
        let most = self.standing_bytes + HEAP_BYTES_MAX + RESULT_BYTES_MAX;
        self.reservation.hold(most).map_err(|exceeded| too_much(&exceeded.to_string()))?;
        let set = match globals.filter(|_| !self.has_globals) {
            Some(globals) => self.engine.set_globals(globals),
            None => Ok(()),
        };
        self.has_globals |= globals.is_some();
        let result = set.and_then(|()| call(&self.engine));
        self.calls += 1;
        if self.calls % CALLS_MEASURED == 1 {
            self.standing_bytes = self.engine.heap_bytes().max(ENGINE_BYTES);
        }
        self.reservation.shrink(self.standing_bytes);
        result.map_err(|error| {
            let stopped_by = self.stopped_by.lock().unwrap_or_else(PoisonError::into_inner).take();
            stopped_by.unwrap_or_else(|| of_script(&error))
        })
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
