//! The memory of one request while it is evaluated, and whether it may go on.
//!
//! Every value that an expression makes, every set of elements and every pattern that is compiled
//! is charged to the request's [`RequestMemory`] while it lives: a [`Charge`] goes with it and
//! gives back when it is dropped. Nothing that grows can be made without: the constructors of
//! `Evaluated` and `Elements` ask for it. So a small request can't make much of little, by whatever
//! operators.
//!
//! 1. A request has one [`Reservation`] of the memory that all requests share. It grows in steps of
//!    a megabyte, so that most charges touch no memory that others use.
//! 2. Values that take less than [`FREE_BYTES`] are not counted: as much as the part of the request
//!    that asked for them.
//! 3. Evaluating is counted in units of some ten nanoseconds ([`RequestMemory::work`]); each
//!    [`CHECK_UNITS`] it is asked whether to go on (`killOp`, `maxTimeMS`, a client that is gone).
//!
//! *Thread safety*: a request is evaluated by one thread at a time, which may change. Several would
//! count right, but one might hold a little more than was granted for an instant.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use frond_doc::{DocumentBuf, Value, ValueBuf};
use frond_script::Call;
use frond_store::budget::{Exceeded, Reservation};

use crate::batched_calls::BatchedCalls;
use crate::code::Code;
use crate::error::QueryError;
use crate::sandbox::{self, Sandbox};

/// Asks whether to go on; fails with what the query is to fail with.
pub type KeepGoing = dyn Fn() -> Result<(), QueryError> + Send + Sync;

/// The bytes that the values of one request may take together, unless less is left: one of the
/// largest while it is built (twice its bytes), and the values it is made of.
pub const REQUEST_BYTES_MAX: usize = 200 << 20;
/// The bytes that aren't counted.
const FREE_BYTES: usize = 256;
/// The size from which on a charge grows in steps.
const STEP_BYTES: usize = 64 << 10;
/// The units of work between two checks whether to go on: such a check comes each millisecond at
/// most.
const CHECK_UNITS: usize = 8192;
/// The memory of a parsed filter, pipeline or update: so often its bytes, for instance a number of
/// a `$in` as a value and as a bound of an index.
const PARSED_COPIES: usize = 16;
/// The size below which nothing is counted.
const PARSED_BYTES_MIN: usize = 16 << 10;
/// The number of bytes of a value that are a unit of work.
const BYTES_OF_UNIT: usize = 16;

/// The memory of a request's evaluation. Cloning shares it; the default counts nothing and never
/// stops.
#[derive(Clone, Default)]
pub struct RequestMemory(Option<Arc<Account>>);

struct Account {
    /// The bytes that all charges that live hold.
    held: AtomicUsize,
    /// The bytes that may be held without asking.
    granted: AtomicUsize,
    reservation: Mutex<Reservation>,
    /// The memory that the parsed request takes, and the bytes that were parsed.
    parsed: Mutex<(Reservation, usize)>,
    /// Units since it was last asked whether to go on.
    worked: AtomicUsize,
    go_on: Option<Arc<KeepGoing>>,
    allows_scripts: bool,
    /// Made for the first script.
    sandbox: Mutex<Option<Sandbox>>,
    /// The calls of the document that is evaluated together with others.
    noted: Mutex<Option<BatchedCalls>>,
    /// The functions that the database stores for a `$where`, by their names.
    stored_functions: OnceLock<Arc<DocumentBuf>>,
}

impl fmt::Debug for RequestMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestMemory").field(&self.bytes()).finish()
    }
}

impl RequestMemory {
    /// Makes the memory of a request: as much as `reservation` allows, until `go_on` fails.
    pub fn new(reservation: Reservation, go_on: Option<Arc<KeepGoing>>) -> RequestMemory {
        let parsed = Reservation::new(usize::MAX, reservation.budget().cloned());
        RequestMemory(Some(Arc::new(Account {
            parsed: Mutex::new((parsed, 0)),
            held: AtomicUsize::new(0),
            granted: AtomicUsize::new(0),
            reservation: Mutex::new(reservation),
            worked: AtomicUsize::new(0),
            go_on,
            allows_scripts: true,
            sandbox: Mutex::default(),
            noted: Mutex::default(),
            stored_functions: OnceLock::new(),
        })))
    }

    /// The same for a request that may run no scripts; of memory that isn't shared yet.
    pub fn without_scripts(mut self) -> RequestMemory {
        if let Some(account) = self.0.as_mut().and_then(Arc::get_mut) {
            account.allows_scripts = false;
        }
        self
    }

    /// Whether scripts may run.
    pub(crate) fn allows_scripts(&self) -> bool {
        self.0.as_ref().is_some_and(|account| account.allows_scripts)
    }

    /// Makes these global for each `$where`: functions that the database stores, by their names.
    /// The first ones stay.
    pub fn set_stored_functions(&self, functions: Arc<DocumentBuf>) {
        if let Some(account) = &self.0 {
            account.stored_functions.get_or_init(|| functions);
        }
    }

    /// What is global for each `$where`.
    pub(crate) fn stored_functions(&self) -> Option<&Arc<DocumentBuf>> {
        self.0.as_ref()?.stored_functions.get()
    }

    /// Runs a script in the request's sandbox; its globals count if nothing was global before.
    ///
    /// # Errors
    /// 31264 if it may run none; what the script fails with; `ExceededMemoryLimit`.
    pub(crate) fn run_script(
        &self,
        call: Call<'_>,
        globals: Option<&Arc<DocumentBuf>>,
    ) -> Result<ValueBuf, QueryError> {
        if let Some(noted) = &mut *self.scripted()?.noted()
            && let Some(answer) = noted.answer(&call, globals)
        {
            return answer;
        }
        let answers = self.run_scripts(vec![call], globals)?;
        answers.into_iter().next().expect("of one call at least")
    }

    /// Runs scripts, of which the first ones have results, one at least.
    ///
    /// # Errors
    /// As [`run_script`](Self::run_script), but for what the scripts fail with.
    pub(crate) fn run_scripts(
        &self,
        calls: Vec<Call<'_>>,
        globals: Option<&Arc<DocumentBuf>>,
    ) -> Result<Vec<Result<ValueBuf, QueryError>>, QueryError> {
        let account = self.scripted()?;
        self.check()?;
        let mut sandbox = account.sandbox.lock().unwrap_or_else(PoisonError::into_inner);
        if sandbox.is_none() {
            *sandbox = Some(Sandbox::new(self.another(usize::MAX), account.go_on.clone())?);
        }
        sandbox.as_mut().expect("made above").run(calls, globals.map(|globals| globals.view()))
    }

    /// Replaces the record of calls that are not to be made at once; returns the former one.
    pub(crate) fn note_calls(&self, noted: Option<BatchedCalls>) -> Option<BatchedCalls> {
        self.0.as_ref().and_then(|account| std::mem::replace(&mut *account.noted(), noted))
    }

    /// Refuses scripts, if the request may run none.
    ///
    /// # Errors
    /// 31264.
    pub(crate) fn check_scripts(&self) -> Result<(), QueryError> {
        self.scripted().map(|_| ())
    }

    fn scripted(&self) -> Result<&Account, QueryError> {
        let account = self.0.as_deref().filter(|account| account.allows_scripts);
        account.ok_or_else(sandbox::disabled)
    }

    /// Charges a part of the request that is about to be parsed, for as long as the request lives.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub fn hold_parsed(&self, bytes: usize) -> Result<(), QueryError> {
        let Some(account) = self.0.as_ref().filter(|_| PARSED_BYTES_MIN <= bytes) else {
            return Ok(());
        };
        account.hold_kept(bytes.saturating_mul(PARSED_COPIES))
    }

    /// Charges what was parsed and takes so many bytes, for as long as the request lives.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn hold_kept(&self, bytes: usize) -> Result<(), QueryError> {
        let account = self.0.as_ref().filter(|_| PARSED_BYTES_MIN <= bytes);
        account.map_or(Ok(()), |account| account.hold_kept(bytes))
    }

    /// Asks at once whether to go on.
    ///
    /// # Errors
    /// The error of the request, if it is to stop.
    pub fn check(&self) -> Result<(), QueryError> {
        self.work(CHECK_UNITS)
    }

    /// Returns how much is charged.
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |account| account.held.load(Ordering::Relaxed))
    }

    /// Another reservation, of `bytes_max`, of the memory that all requests share: for what a
    /// request finds, not for what it makes.
    pub fn another(&self, bytes_max: usize) -> Reservation {
        let budget = self.0.as_ref().and_then(|account| {
            account.reservation.lock().unwrap_or_else(PoisonError::into_inner).budget().cloned()
        });
        Reservation::new(bytes_max, budget)
    }

    /// The same for a part of the request that another thread works on, which asks `go_on` besides:
    /// threads that count in one place wait for each other.
    pub fn of_part(
        &self,
        go_on: impl Fn() -> Result<(), QueryError> + Send + Sync + 'static,
    ) -> RequestMemory {
        let Some(account) = self.0.clone() else { return RequestMemory(None) };
        let reservation = {
            let whole = account.reservation.lock().unwrap_or_else(PoisonError::into_inner);
            Reservation::new(whole.bytes_max(), whole.budget().cloned())
        };
        let both = move || {
            account.go_on.as_ref().map_or(Ok(()), |go_on| go_on())?;
            go_on()
        };
        let part = RequestMemory::new(reservation, Some(Arc::new(both)));
        if let Some(functions) = self.stored_functions() {
            part.set_stored_functions(Arc::clone(functions));
        }
        if self.allows_scripts() { part } else { part.without_scripts() }
    }

    /// A charge of nothing, to grow.
    pub(crate) fn charge(&self) -> Charge {
        Charge { account: self.0.clone(), charged: 0, covered: FREE_BYTES }
    }

    /// A charge of `bytes`.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn charge_of(&self, bytes: usize) -> Result<Charge, QueryError> {
        let mut charge = Charge { account: None, charged: 0, covered: FREE_BYTES };
        if FREE_BYTES < bytes
            && let Some(account) = &self.0
        {
            charge.account = Some(Arc::clone(account));
            charge.set(bytes)?;
        }
        Ok(charge)
    }

    /// Counts work.
    ///
    /// # Errors
    /// The error of the request, if it is to stop.
    #[inline]
    pub(crate) fn work(&self, units: usize) -> Result<(), QueryError> {
        self.0.as_ref().map_or(Ok(()), |account| account.work(units))
    }

    /// Counts reading values of so many bytes.
    ///
    /// # Errors
    /// As [`work`](Self::work).
    #[inline]
    pub(crate) fn read(&self, bytes: usize) -> Result<(), QueryError> {
        if bytes < BYTES_OF_UNIT * 16 { Ok(()) } else { self.work(bytes / BYTES_OF_UNIT) }
    }
}

impl Account {
    fn noted(&self) -> MutexGuard<'_, Option<BatchedCalls>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn work(&self, units: usize) -> Result<(), QueryError> {
        let worked = self.worked.load(Ordering::Relaxed).saturating_add(units);
        if worked < CHECK_UNITS {
            self.worked.store(worked, Ordering::Relaxed);
            return Ok(());
        }
        self.worked.store(0, Ordering::Relaxed);
        self.go_on.as_ref().map_or(Ok(()), |go_on| go_on())
    }

    fn hold_kept(&self, bytes: usize) -> Result<(), QueryError> {
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let (reservation, held) = &mut *parsed;
        *held += bytes;
        reservation.hold(*held).map_err(too_much)
    }

    fn take(&self, bytes: usize) -> Result<(), QueryError> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held <= self.granted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
        let held_now = self.held.load(Ordering::Relaxed);
        let allowed = reservation.hold(held_now);
        self.granted.store(reservation.granted(), Ordering::Relaxed);
        allowed.map_err(|exceeded| {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
            too_much(exceeded)
        })
    }

    fn give_back(&self, bytes: usize) {
        let held = self.held.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        let granted = self.granted.load(Ordering::Relaxed);
        // Memory that is needed again at once isn't given back.
        if granted / 4 <= held.max(STEP_BYTES) {
            return;
        }
        let mut reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
        reservation.shrink(self.held.load(Ordering::Relaxed));
        self.granted.store(reservation.granted(), Ordering::Relaxed);
    }
}

fn too_much(exceeded: Exceeded) -> QueryError {
    let message = format!("evaluating the request exceeded memory limit of {exceeded}");
    QueryError::new(Code::ExceededMemoryLimit, message)
}

/// Bytes that are charged until this is dropped.
pub(crate) struct Charge {
    /// `None`: it isn't counted.
    account: Option<Arc<Account>>,
    charged: usize,
    /// Up to here nothing need be asked.
    covered: usize,
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Charge").field(&self.charged).finish()
    }
}

impl Charge {
    /// A charge that isn't counted: for what a stage's own reservation has.
    pub(crate) fn uncounted() -> Charge {
        Charge { account: None, charged: 0, covered: usize::MAX }
    }

    /// Says that what it stands for grows to `bytes`.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`; the charge stays as it was.
    #[inline]
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), QueryError> {
        if bytes <= self.covered { Ok(()) } else { self.grow(bytes) }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<(), QueryError> {
        let wanted = match bytes < STEP_BYTES {
            true => bytes.next_power_of_two(),
            false => bytes.saturating_add(bytes / 8).next_multiple_of(STEP_BYTES),
        };
        self.set(wanted)?;
        self.covered = wanted;
        Ok(())
    }

    /// Says that it takes exactly `bytes`.
    ///
    /// # Errors
    /// As [`cover`](Self::cover).
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), QueryError> {
        let bytes = if bytes <= FREE_BYTES { 0 } else { bytes };
        if let Some(account) = &self.account {
            if self.charged < bytes {
                account.take(bytes - self.charged)?;
            } else if bytes < self.charged {
                account.give_back(self.charged - bytes);
            }
            self.charged = bytes;
        }
        self.covered = bytes.max(FREE_BYTES);
        Ok(())
    }

    /// Counts work, as [`RequestMemory::work`].
    #[inline]
    pub(crate) fn work(&self, units: usize) -> Result<(), QueryError> {
        self.account.as_ref().map_or(Ok(()), |account| account.work(units))
    }

    /// A charge of `bytes` to the same request.
    ///
    /// # Errors
    /// As [`cover`](Self::cover).
    pub(crate) fn another(&self, bytes: usize) -> Result<Charge, QueryError> {
        RequestMemory(self.account.clone()).charge_of(bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if 0 < self.charged
            && let Some(account) = &self.account
        {
            account.give_back(self.charged);
        }
    }
}

/// Returns how many bytes of a value lie outside of [`Value`] itself.
pub(crate) fn bytes_of(value: Value<'_>) -> usize {
    match value {
        Value::String(text) | Value::Symbol(text) | Value::JavaScript(text) => text.len(),
        Value::Document(document) => document.as_bytes().len(),
        Value::Array(array) => array.as_bytes().len(),
        Value::Binary(binary) => binary.bytes.len(),
        Value::Regex(regex) => regex.pattern.len() + regex.options.len(),
        Value::JavaScriptWithScope { code, scope } => code.len() + scope.as_bytes().len(),
        _ => 0,
    }
}

/// Sorts as `sort_by` does, stable, and asks on the way whether to go on: by parts, which are
/// merged.
///
/// # Errors
/// The error of the request, if it is to stop.
pub(crate) fn sort_by<T: Copy>(
    values: &mut Vec<T>,
    memory: &RequestMemory,
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Result<(), QueryError> {
    /// Sorted at once: some milliseconds.
    const PART: usize = 1 << 14;
    for part in values.chunks_mut(PART) {
        part.sort_by(&compare);
        memory.work(part.len() * 4)?;
    }
    let mut merged = Vec::new();
    let mut length = PART;
    while length < values.len() {
        merged.clear();
        merged.reserve_exact(values.len());
        for pair in values.chunks(2 * length) {
            let (mut left, mut right) = pair.split_at(length.min(pair.len()));
            while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
                if compare(second, first).is_lt() {
                    merged.push(*second);
                    right = right_rest;
                } else {
                    merged.push(*first);
                    left = left_rest;
                }
                memory.work(4)?;
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(values, &mut merged);
        length *= 2;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_store::budget::MemoryBudget;

    fn memory(bytes_max: usize) -> (Arc<MemoryBudget>, RequestMemory) {
        let budget = MemoryBudget::new(bytes_max);
        let reservation = Reservation::new(bytes_max, Some(Arc::clone(&budget)));
        (budget, RequestMemory::new(reservation, None))
    }

    #[test]
    fn charges_are_given_back() {
        let (budget, memory) = memory(8 << 20);
        let large = memory.charge_of(5 << 20).unwrap();
        let mut growing = memory.charge();
        growing.cover(FREE_BYTES).unwrap();
        assert_eq!(memory.bytes(), 5 << 20);
        growing.cover(2 << 20).unwrap();
        let error = memory.charge_of(2 << 20).unwrap_err();
        assert_eq!(error.code, Code::ExceededMemoryLimit);
        growing.set(1).unwrap();
        assert_eq!(memory.bytes(), 5 << 20, "what was refused isn't held");
        let second = large.another(3 << 20).unwrap();
        assert_eq!(budget.bytes(), 8 << 20);
        drop((large, second));
        assert_eq!((memory.bytes(), budget.bytes()), (0, 0), "unused memory goes back at once");
        drop((growing, memory));
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn parsed_requests_are_charged_until_they_end() {
        let (budget, memory) = memory(8 << 20);
        memory.hold_parsed(100).unwrap();
        assert_eq!(budget.bytes(), 0);
        memory.hold_parsed(300 << 10).unwrap();
        let error = memory.hold_parsed(300 << 10).unwrap_err();
        assert_eq!(error.code, Code::ExceededMemoryLimit);
        assert_eq!(budget.bytes(), 5 << 20);
        drop(memory);
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn work_asks_whether_to_go_on() {
        let checks = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&checks);
        let go_on = move || {
            count.fetch_add(1, Ordering::Relaxed);
            Err(QueryError::new(Code::MaxTimeMSExpired, "no"))
        };
        let memory = RequestMemory::new(Reservation::new(1, None), Some(Arc::new(go_on)));
        let results: Vec<bool> = (0..CHECK_UNITS).map(|_| memory.work(1).is_ok()).collect();
        assert_eq!(results.iter().filter(|keep_going| !**keep_going).count(), 1);
        assert_eq!(checks.load(Ordering::Relaxed), 1);
        assert!(memory.read(CHECK_UNITS * BYTES_OF_UNIT).is_err());
    }

    #[test]
    fn sorting_by_parts_sorts_stably() {
        for count in [0, 1, 5, 16_384, 16_385, 40_000, 100_000] {
            let mut next = 1_u64;
            let mut values: Vec<(u64, usize)> = (0..count)
                .map(|position| {
                    next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (next >> 56, position)
                })
                .collect();
            let mut expected = values.clone();
            expected.sort_by_key(|(key, _)| *key);
            let by_key = |a: &(u64, usize), b: &(u64, usize)| a.0.cmp(&b.0);
            sort_by(&mut values, &RequestMemory::default(), by_key).unwrap();
            assert_eq!(values, expected, "{count}");
        }
    }
}
