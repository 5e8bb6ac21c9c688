//! Where a request's scripts run, and what that is charged with.
//!
//! The place is made for the first script, and goes with the request: nothing is left for another.
//! While a script runs, as much is reserved as its values may take at most and what it hands out;
//! between calls what the values do take, which is measured now and then. What is reserved goes
//! with the place: where that is a thread, once a call that was left behind has ended.

use std::cell::Cell;
use std::sync::Arc;

use frond_doc::ValueBuf;
use frond_script::{Call, HEAP_BYTES_MAX, Place, RESULT_BYTES_MAX, ScriptError, Turn};
use frond_store::budget::Reservation;

use crate::code::Code;
use crate::error::{QueryError, failure};

/// What a place takes before it has run anything: measured.
const PLACE_BYTES: usize = 4 << 20;
/// Measuring walks over all values of scripts, some thousands, and so is done ever more seldom, and
/// then for each so many calls.
const CALLS_MEASURED: usize = 256;

/// Asks whether to go on.
type GoOn = dyn Fn() -> Result<(), QueryError> + Send + Sync;

/// The place of a request's scripts.
pub(crate) struct Sandbox {
    place: Place,
    /// What the place is charged with. None once it is gone.
    reservation: Option<Reservation>,
    standing_bytes: usize,
    calls: usize,
    has_globals: bool,
    go_on: Option<Arc<GoOn>>,
}

impl Sandbox {
    /// A new place. `reservation` is its own.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`; `JSInterpreterFailure` if there is none.
    pub(crate) fn new(
        mut reservation: Reservation,
        go_on: Option<Arc<GoOn>>,
    ) -> Result<Sandbox, QueryError> {
        hold(&mut reservation, PLACE_BYTES)?;
        Ok(Sandbox {
            place: Place::new().map_err(|error| of_script(&error))?,
            reservation: Some(reservation),
            standing_bytes: PLACE_BYTES,
            calls: 0,
            has_globals: false,
            go_on,
        })
    }

    /// Makes a call; its globals count if nothing was global before.
    ///
    /// # Errors
    /// What the script failed with, or the request is to fail with; `ExceededMemoryLimit`.
    pub(crate) fn run(&mut self, mut call: Call<'_>) -> Result<ValueBuf, QueryError> {
        let stopped_by = Cell::new(None);
        let go_on = || {
            let asked = self.go_on.as_ref().map_or(Ok(()), |go_on| go_on());
            asked.map_err(|error| stopped_by.set(Some(error))).is_ok()
        };
        let interrupted = || of_script(&ScriptError::Interrupted);
        let Some(_turn) = Turn::wait(go_on) else {
            return Err(stopped_by.take().unwrap_or_else(interrupted));
        };
        let mut reservation = self.reservation.take().ok_or_else(interrupted)?;
        let most = self.standing_bytes + HEAP_BYTES_MAX + RESULT_BYTES_MAX;
        if let Err(error) = hold(&mut reservation, most) {
            self.reservation = Some(reservation);
            return Err(error);
        }
        call.globals = call.globals.filter(|_| !self.has_globals);
        self.has_globals |= call.globals.is_some();
        self.calls += 1;
        call.measures = self.calls.is_power_of_two() || self.calls.is_multiple_of(CALLS_MEASURED);
        let result = match self.place.run(&call, reservation, go_on) {
            Ok((mut reservation, answer)) => {
                if let Some(bytes) = answer.heap_bytes {
                    self.standing_bytes = bytes.saturating_add(PLACE_BYTES);
                }
                reservation.shrink(self.standing_bytes);
                self.reservation = Some(reservation);
                answer.result
            }
            Err(error) => Err(error),
        };
        result.map_err(|error| stopped_by.take().unwrap_or_else(|| of_script(&error)))
    }
}

fn hold(reservation: &mut Reservation, bytes: usize) -> Result<(), QueryError> {
    reservation.hold(bytes).map_err(|exceeded| too_much(&exceeded.to_string()))
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
        ScriptError::Thrown(_) | ScriptError::OutOfMemory | ScriptError::Ended => {
            Code::JSInterpreterFailure
        }
        ScriptError::Interrupted => Code::Interrupted,
        ScriptError::TooLarge => Code::BSONObjectTooLarge,
        ScriptError::NoBson(code, _) => Code::of(*code),
    };
    QueryError::new(code, error.to_string())
}
