//! A client's function, and calling it in the request's sandbox.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value, ValueBuf};
use frond_script::{Call, ResultKind};

use crate::error::QueryError;
use crate::memory::RequestMemory;

/// The source of a function, or of the expression or the statements that are its body.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    source: Arc<str>,
    /// What is global for all scripts of the request.
    globals: Option<Arc<DocumentBuf>>,
}

impl Script {
    /// A script of this source.
    pub(crate) fn new(source: &str) -> Script {
        Script { source: source.into(), globals: None }
    }

    /// The same; if it is the first of its request that is called, these are global from then on.
    pub(crate) fn with_globals(self, globals: DocumentBuf) -> Script {
        Script { globals: Some(Arc::new(globals)), ..self }
    }

    /// The source.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Calls the script with `this` and `arguments`.
    ///
    /// # Errors
    /// `JSInterpreterFailure` for an exception; the request's own error, if it must stop;
    /// `ExceededMemoryLimit`; 31264 where the request may run no scripts.
    pub(crate) fn call<'v>(
        &self,
        memory: &RequestMemory,
        this: Option<Document<'v>>,
        arguments: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<ValueBuf, QueryError> {
        let arguments = arguments.into_iter().collect();
        self.run(memory, Call { arguments, ..Call::new(ResultKind::Result, &self.source, this) })
    }

    /// Whether what it gives for `this` counts as true in a script, which knows the functions that
    /// the database stores.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub(crate) fn holds(
        &self,
        memory: &RequestMemory,
        this: Document<'_>,
    ) -> Result<bool, QueryError> {
        let call = Call::new(ResultKind::Truth, &self.source, Some(this));
        let holds = memory.run_script(call, memory.stored_functions())?;
        Ok(holds.as_value() == Value::Boolean(true))
    }

    /// The pairs `{k, v}` that it emits for `this`, as an array.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub(crate) fn emits(
        &self,
        memory: &RequestMemory,
        this: Document<'_>,
    ) -> Result<ValueBuf, QueryError> {
        self.run(memory, Call::new(ResultKind::Emitted, &self.source, Some(this)))
    }

    fn run(&self, memory: &RequestMemory, call: Call<'_>) -> Result<ValueBuf, QueryError> {
        memory.run_script(call, self.globals.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use frond_store::budget::{MemoryBudget, Reservation};

    fn run(memory: &RequestMemory, source: &str) -> Result<ValueBuf, QueryError> {
        Script::new(source).call(memory, None, [])
    }

    fn code(result: Result<ValueBuf, QueryError>) -> Code {
        result.expect_err("it fails").code
    }

    #[test]
    fn memory_of_a_script_is_reserved_and_given_back() {
        let budget = MemoryBudget::new(200 << 20);
        let memory =
            |bytes| RequestMemory::new(Reservation::new(bytes, Some(Arc::clone(&budget))), None);
        let first = memory(1 << 20);
        run(&first, "kept = 'x'.repeat(1 << 24); 1").unwrap();
        let kept = budget.bytes();
        assert!((16 << 20..40 << 20).contains(&kept), "{kept}");
        let mut other = Reservation::new(200 << 20, Some(Arc::clone(&budget)));
        other.hold((195 << 20) - kept).unwrap();
        assert_eq!(code(run(&memory(1 << 20), "1")), Code::ExceededMemoryLimit);
        drop(other);
        run(&memory(1 << 20), "1").unwrap();
        assert_eq!(budget.bytes(), kept, "what a request was charged with goes with it");
        drop(first);
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn where_memory_is_short_scripts_may_take_less() {
        let budget = MemoryBudget::new(25 << 20);
        let reservation = Reservation::new(1 << 20, Some(Arc::clone(&budget)));
        let memory = RequestMemory::new(reservation, None);
        assert_eq!(run(&memory, "1 + 1").unwrap().as_value(), Value::Double(2.0));
        run(&memory, "'x'.repeat(3 << 20)").unwrap();
        for (source, expected, limit) in [
            ("'x'.repeat(20 << 20)", Code::JSInterpreterFailure, 16 << 20),
            ("'x'.repeat(5 << 20)", Code::BSONObjectTooLarge, (4 << 20) + (4 << 10)),
        ] {
            let error = run(&memory, source).expect_err("it takes more");
            assert_eq!(error.code, expected);
            assert!(error.message.ends_with(&format!("more than {limit} bytes")), "{error}");
        }
    }

    #[test]
    fn a_script_stops_with_what_the_request_stops_with() {
        let stop = || Err(QueryError::new(Code::MaxTimeMSExpired, "late"));
        let checks = std::sync::atomic::AtomicUsize::new(0);
        let go_on = move || {
            let count = checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if count < 10 { Ok(()) } else { stop() }
        };
        let memory = RequestMemory::new(Reservation::new(1 << 20, None), Some(Arc::new(go_on)));
        run(&memory, "1").unwrap();
        let caught = "while (true) { try { while (true); } catch (e) { } }";
        assert_eq!(code(run(&memory, caught)), Code::MaxTimeMSExpired);
    }

    #[test]
    fn a_request_may_run_none() {
        let none = RequestMemory::new(Reservation::new(1 << 20, None), None).without_scripts();
        assert_eq!(code(run(&none, "1")), Code::Location(31264));
        assert_eq!(code(run(&none.of_part(|| Ok(())), "1")), Code::Location(31264));
        assert_eq!(code(run(&RequestMemory::default(), "1")), Code::Location(31264));
    }

    #[test]
    fn the_first_script_says_what_is_global() {
        let memory = RequestMemory::new(Reservation::new(1 << 20, None), None);
        let globals = frond_doc::extended_json::parse(r#"{"n": 2, "f": {"$code": "x => x * n"}}"#);
        let script = Script::new("f(21)").with_globals(globals.unwrap());
        let value = script.call(&memory, None, []).unwrap();
        assert_eq!(value.as_value(), Value::Double(42.0));
        let value = run(&memory, "n").unwrap();
        assert_eq!(value.as_value(), Value::Double(2.0));
    }
}
