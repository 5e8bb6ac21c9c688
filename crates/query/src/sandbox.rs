//! The sandbox of a request's scripts, and the memory that it is charged.
//!
//! The place is made for the first script, and goes with the request: nothing is left for another.
//! While scripts run, as much is reserved as their values may take at most and what they hand out;
//! where there is less memory, they may take less. Between calls what the values do take is
//! reserved, which is measured now and then. The reservation ends with the place: where that is a
//! thread, once a call that was left behind has ended.

use std::cell::Cell;
use std::sync::Arc;

use frond_doc::{Document, ValueBuf};
use frond_script::{Batch, Call, Limits, ScriptError, ScriptHost, Turn};
use frond_store::budget::{Exceeded, Reservation};

use crate::code::Code;
use crate::error::{QueryError, failure};

/// The memory of a place before it has run anything: measured.
const PLACE_BYTES: usize = 4 << 20;
/// Measuring walks over all values of scripts, some thousands, and so is done ever more seldom, and
/// then for each so many batches of calls.
const BATCHES_MEASURED: usize = 256;

/// Asks whether to go on.
type KeepGoing = dyn Fn() -> Result<(), QueryError> + Send + Sync;

/// The place of a request's scripts.
pub(crate) struct Sandbox {
    place: ScriptHost,
    /// The memory that the place is charged with. None once it is gone.
    reservation: Option<Reservation>,
    standing_bytes: usize,
    batches: usize,
    has_globals: bool,
    go_on: Option<Arc<KeepGoing>>,
}

impl Sandbox {
    /// A new place. `reservation` is its own.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`; `JSInterpreterFailure` if there is none.
    pub(crate) fn new(
        mut reservation: Reservation,
        go_on: Option<Arc<KeepGoing>>,
    ) -> Result<Sandbox, QueryError> {
        reservation.hold(PLACE_BYTES).map_err(too_much)?;
        Ok(Sandbox {
            place: ScriptHost::new().map_err(|error| of_script(&error))?,
            reservation: Some(reservation),
            standing_bytes: PLACE_BYTES,
            batches: 0,
            has_globals: false,
            go_on,
        })
    }

    /// Makes calls, the first of which have results, one at least: `globals` count if nothing was
    /// global before.
    ///
    /// # Errors
    /// The error of the request; `ExceededMemoryLimit`.
    pub(crate) fn run(
        &mut self,
        calls: Vec<Call<'_>>,
        globals: Option<Document<'_>>,
    ) -> Result<Vec<Result<ValueBuf, QueryError>>, QueryError> {
        let stopped_by = Cell::new(None);
        let go_on = || {
            let result = self.go_on.as_ref().map_or(Ok(()), |go_on| go_on());
            result.map_err(|error| stopped_by.set(Some(error))).is_ok()
        };
        let interrupted = || of_script(&ScriptError::Interrupted);
        let Some(_turn) = Turn::wait(go_on) else {
            return Err(stopped_by.take().unwrap_or_else(interrupted));
        };
        let mut reservation = self.reservation.take().ok_or_else(interrupted)?;
        let limits = match hold_most(&mut reservation, self.standing_bytes) {
            Ok(limits) => limits,
            Err(exceeded) => {
                self.reservation = Some(reservation);
                return Err(too_much(exceeded));
            }
        };
        let globals = globals.filter(|_| !self.has_globals);
        self.has_globals |= globals.is_some();
        self.batches += 1;
        let measures =
            self.batches.is_power_of_two() || self.batches.is_multiple_of(BATCHES_MEASURED);
        let batch = Batch { calls, globals, measures, limits };
        match self.place.run(&batch, reservation, go_on) {
            Ok((mut reservation, answers)) => {
                if let Some(bytes) = answers.heap_bytes {
                    self.standing_bytes = bytes.saturating_add(PLACE_BYTES);
                }
                reservation.shrink(self.standing_bytes);
                self.reservation = Some(reservation);
                let failed = |error| match error {
                    ScriptError::Interrupted => stopped_by.take().unwrap_or_else(interrupted),
                    other => of_script(&other),
                };
                Ok(answers.results.into_iter().map(|it| it.map_err(failed)).collect())
            }
            Err(error) => Err(stopped_by.take().unwrap_or_else(|| of_script(&error))),
        }
    }
}

/// Reserves what the largest limits ask for that there is memory for. The values that scripts keep,
/// `standing` bytes, may be no more than half of those that they may have.
fn hold_most(reservation: &mut Reservation, standing: usize) -> Result<Limits, Exceeded> {
    let mut refused = None;
    for limits in Limits::sizes() {
        let kept = standing.saturating_sub(PLACE_BYTES);
        if refused.is_some() && limits.heap_bytes / 2 < kept {
            break;
        }
        match reservation.hold(PLACE_BYTES + limits.heap_bytes + limits.result_bytes) {
            Ok(()) => return Ok(limits),
            Err(exceeded) => refused = Some(exceeded),
        }
    }
    Err(refused.expect("there is a size"))
}

/// Returns the error where the request may run no scripts.
pub(crate) fn disabled() -> QueryError {
    failure(31264, "Cannot run server-side javascript without the javascript engine enabled")
}

fn too_much(exceeded: Exceeded) -> QueryError {
    let message = format!("server-side JavaScript exceeded memory limit of {exceeded}");
    QueryError::new(Code::ExceededMemoryLimit, message)
}

fn of_script(error: &ScriptError) -> QueryError {
    let code = match error {
        ScriptError::Thrown(_) | ScriptError::OutOfMemory(_) | ScriptError::Ended => {
            Code::JSInterpreterFailure
        }
        ScriptError::Interrupted => Code::Interrupted,
        ScriptError::TooLarge(_) => Code::BSONObjectTooLarge,
        ScriptError::NoBson(code, _) => Code::of(*code),
    };
    QueryError::new(code, error.to_string())
}
