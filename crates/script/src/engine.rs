//! One request's engine, and calls of functions in it.
//!
//! A function is compiled when it is first called, and known by its source. The script
//! `scripts/calls.js` does both; Rust converts what goes in and comes out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use md5::{Digest, Md5};
use rquickjs::context::intrinsic;
use rquickjs::function::Rest;
use rquickjs::{Array, Context, Ctx, Exception, Function, Object, Runtime};

use crate::message::{Answer, Answers, Batch, Call, ResultKind};
use crate::read::Reader;
use crate::write::{Refused, Writer};
use crate::{Limits, ScriptError};

/// Asks whether to go on.
pub type KeepGoing = dyn Fn() -> bool + Send + Sync;

/// Below the smallest stack of a thread that evaluates expressions, with room for what is on it.
const STACK_BYTES_MAX: usize = 256 << 10;
/// Once they took so long, or hand out so much, calls that go together are answered: as many as
/// were made.
const TOGETHER: Duration = Duration::from_millis(5);
const TOGETHER_BYTES: usize = 64 << 10;
/// The object that has the functions that Rust calls.
const HOST: &str = "__frond";

/// The parts of ECMAScript that scripts may use.
type Library = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    // No script has it, but syntax leads there: without it an `async` function's end is an
    // assertion of the engine, which ends the process.
    intrinsic::Promise,
);

const SCRIPTS: [(&str, &str); 3] = [
    ("types", include_str!("scripts/types.js")),
    ("calls", include_str!("scripts/calls.js")),
    ("guards", include_str!("scripts/guards.js")),
];

/// A sandbox for the scripts of one request.
///
/// *Thread safety*: calls wait for each other.
pub struct Engine {
    context: Context,
    stopped: Arc<AtomicBool>,
    limits: Mutex<Limits>,
    emitted: Arc<Mutex<Emitted>>,
}

/// The pairs that a call has emitted.
struct Emitted {
    pairs: DocumentBuilder,
    failure: Option<ScriptError>,
    bytes_max: usize,
}

impl Emitted {
    fn nothing(bytes_max: usize) -> Emitted {
        Emitted { pairs: DocumentBuilder::new(), failure: None, bytes_max }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// A new sandbox, whose scripts stop when `go_on` says no.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(go_on: Arc<KeepGoing>) -> Result<Engine, ScriptError> {
        let limits = Limits::LARGEST;
        let no_memory = |_| ScriptError::OutOfMemory(limits.heap_bytes);
        let runtime = Runtime::new().map_err(no_memory)?;
        runtime.set_memory_limit(limits.heap_bytes);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let stopped = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stopped);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            let stops = is_stopped.load(Ordering::Relaxed) || !go_on();
            is_stopped.store(stops, Ordering::Relaxed);
            stops
        })));
        let context = Context::builder().with::<Library>().build(&runtime);
        let emitted = Arc::new(Mutex::new(Emitted::nothing(limits.result_bytes)));
        let engine = Engine {
            context: context.map_err(no_memory)?,
            stopped,
            limits: Mutex::new(limits),
            emitted,
        };
        engine.context.with(|ctx| {
            let set = set_up(&ctx, &engine.emitted);
            set.map_err(|error| engine.explained(&ctx, error))
        })?;
        Ok(engine)
    }

    /// Makes calls, one after the other, until one fails or they take long together.
    pub fn answer(&self, batch: &Batch<'_>) -> Answers {
        self.set_limits(batch.limits);
        let mut results = Vec::new();
        match batch.globals.map_or(Ok(()), |globals| self.set_globals(globals)) {
            Ok(()) => self.make_calls(&batch.calls, &mut results),
            Err(error) => results.push(Err(error)),
        }
        Answers { results, heap_bytes: batch.measures.then(|| self.heap_bytes()) }
    }

    #[expect(clippy::disallowed_methods, reason = "nothing that is stored depends on it")]
    fn make_calls(&self, calls: &[Call<'_>], results: &mut Vec<Answer>) {
        let (began, mut bytes) = (Instant::now(), 0);
        for call in calls {
            let result = self.make(call);
            bytes += result.as_ref().map_or(TOGETHER_BYTES, ValueBuf::bytes);
            results.push(result);
            if TOGETHER_BYTES <= bytes || TOGETHER <= began.elapsed() {
                break;
            }
        }
    }

    fn make(&self, call: &Call<'_>) -> Answer {
        match (call.result_kind, call.this) {
            (ResultKind::Truth, this) => {
                let holds = self.holds(call.source, this.unwrap_or(DocumentBuf::empty().view()));
                holds.map(|holds| Value::Boolean(holds).to_buf())
            }
            (ResultKind::Emitted, this) => self.emits(call.source, this),
            (ResultKind::Result, this) => {
                self.call(call.source, this, call.arguments.iter().copied())
            }
        }
    }

    /// Sets the limits of calls from now on.
    pub fn set_limits(&self, limits: Limits) {
        let before = std::mem::replace(&mut *self.lock_limits(), limits);
        if before != limits {
            self.context.runtime().set_memory_limit(limits.heap_bytes);
        }
    }

    fn limits(&self) -> Limits {
        *self.lock_limits()
    }

    fn lock_limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets global variables: a field each.
    ///
    /// # Errors
    /// As [`Engine::call`].
    pub fn set_globals(&self, variables: Document<'_>) -> Result<(), ScriptError> {
        self.begin();
        self.context.with(|ctx| {
            let set = || {
                let reader = Reader::new(host(&ctx)?);
                variables.iter().try_for_each(|(name, value)| {
                    let value = reader.value(&ctx, value)?;
                    ctx.globals().set(name, value)
                })
            };
            set().map_err(|error| self.explained(&ctx, error))
        })
    }

    /// Returns the result of the function, expression or body `source` for `this` and `arguments`.
    /// Where there is a `this`, it is also the global `obj`.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn call<'v>(
        &self,
        source: &str,
        this: Option<Document<'v>>,
        arguments: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<ValueBuf, ScriptError> {
        self.begin();
        self.context.with(|ctx| {
            let called = || {
                let host = host(&ctx)?;
                let reader = Reader::new(host.clone());
                let list = Array::new(ctx.clone())?;
                for (position, argument) in arguments.into_iter().enumerate() {
                    list.set(position, reader.value(&ctx, argument)?)?;
                }
                let this =
                    this.map(|this| reader.value(&ctx, Value::Document(this))).transpose()?;
                let invoke: Function<'_> = host.get("invoke")?;
                let result: rquickjs::Value<'_> = invoke.call((source, this, list))?;
                Ok((host, result))
            };
            let (host, result) = called().map_err(|error| self.explained(&ctx, error))?;
            let mut writer = Writer::new(host, self.limits().result_bytes);
            let written = writer.result(result);
            written.map_err(|error| self.refused(&ctx, error))
        })
    }

    /// Whether `source` gives for `this` what counts as true in a script.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn holds(&self, source: &str, this: Document<'_>) -> Result<bool, ScriptError> {
        self.begin();
        self.context.with(|ctx| {
            let called = || {
                let host = host(&ctx)?;
                let this = Reader::new(host.clone()).value(&ctx, Value::Document(this))?;
                host.get::<_, Function<'_>>("holds")?.call::<_, bool>((source, this))
            };
            called().map_err(|error| self.explained(&ctx, error))
        })
    }

    /// The pairs `{k, v}` that the function `source` emits for `this`, as an array.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn emits(&self, source: &str, this: Option<Document<'_>>) -> Result<ValueBuf, ScriptError> {
        let called = self.call(source, this, []);
        let Emitted { pairs, failure, .. } = self.take_emitted();
        if let Some(failure) = failure {
            return Err(failure);
        }
        called?;
        let mut array = DocumentBuilder::new();
        array.begin_array("");
        for (_, pair) in pairs.build().iter() {
            array.push(pair);
        }
        array.end();
        Ok(ValueBuf::from_only_field(array.build()))
    }

    /// Returns how many bytes the values of scripts take. It walks over all of them.
    pub fn heap_bytes(&self) -> usize {
        usize::try_from(self.context.runtime().memory_usage().malloc_size).unwrap_or(0)
    }

    /// Forgets what the call before has left.
    fn begin(&self) {
        self.stopped.store(false, Ordering::Relaxed);
        self.take_emitted();
    }

    fn take_emitted(&self) -> Emitted {
        let nothing = Emitted::nothing(self.limits().result_bytes);
        std::mem::replace(&mut *self.emitted(), nothing)
    }

    fn emitted(&self) -> MutexGuard<'_, Emitted> {
        self.emitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self, ctx: &Ctx<'_>, error: Refused) -> ScriptError {
        match error {
            Refused::Script(error) => error,
            Refused::Engine(error) => self.explained(ctx, error),
        }
    }

    fn out_of_memory(&self) -> ScriptError {
        ScriptError::OutOfMemory(self.limits().heap_bytes)
    }

    /// Returns the error that reports a failed call.
    fn explained(&self, ctx: &Ctx<'_>, error: rquickjs::Error) -> ScriptError {
        let thrown = ctx.catch();
        if self.stopped.load(Ordering::Relaxed) {
            return ScriptError::Interrupted;
        }
        if !matches!(error, rquickjs::Error::Exception) {
            return match error {
                rquickjs::Error::Allocation => self.out_of_memory(),
                other => ScriptError::Thrown(other.to_string()),
            };
        }
        // A script may have changed what an error says of itself, and that may fail in turn.
        let explain = || host(ctx)?.get::<_, Function<'_>>("explain")?.call::<_, String>((thrown,));
        let text = explain().ok();
        ctx.catch();
        if self.stopped.load(Ordering::Relaxed) {
            return ScriptError::Interrupted;
        }
        match text {
            Some(text) if text.starts_with("InternalError: out of memory") => self.out_of_memory(),
            Some(text) => ScriptError::Thrown(text),
            None => ScriptError::Thrown("uncaught exception".to_owned()),
        }
    }
}

/// The functions of `scripts/calls.js`.
fn host<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    ctx.globals().get(HOST)
}

fn set_up(ctx: &Ctx<'_>, emitted: &Arc<Mutex<Emitted>>) -> rquickjs::Result<()> {
    for (_, script) in SCRIPTS {
        ctx.eval::<(), _>(script)?;
    }
    let globals = ctx.globals();
    let md5 = |text: String| data_encoding::HEXLOWER.encode(&Md5::digest(text.as_bytes()));
    globals.set("hex_md5", Function::new(ctx.clone(), md5)?)?;
    let emitted = Arc::clone(emitted);
    let emit = of_any_lifetime(move |ctx, pair| emit(&ctx, &emitted, &pair.0));
    globals.set("emit", Function::new(ctx.clone(), emit)?)
}

/// Says of a closure that its arguments live as long as each other.
fn of_any_lifetime<F>(closure: F) -> F
where
    F: for<'js> Fn(Ctx<'js>, Rest<rquickjs::Value<'js>>) -> rquickjs::Result<()>,
{
    closure
}

/// `emit(key, value)`: both are written at once, since a script may change them later.
fn emit<'js>(
    ctx: &Ctx<'js>,
    emitted: &Mutex<Emitted>,
    pair: &[rquickjs::Value<'js>],
) -> rquickjs::Result<()> {
    let bytes_max = emitted.lock().unwrap_or_else(PoisonError::into_inner).bytes_max;
    let written = match pair {
        [key, value] => Writer::new(host(ctx)?, bytes_max).pair(key.clone(), value.clone()),
        _ => Err(Refused::Script(ScriptError::NoBson(31220, "emit takes 2 args".to_owned()))),
    };
    let mut emitted = emitted.lock().unwrap_or_else(PoisonError::into_inner);
    let failure = match written {
        Ok(pair) if emitted.pairs.bytes() + pair.as_bytes().len() <= bytes_max => {
            emitted.pairs.append("", Value::Document(pair.view()));
            return Ok(());
        }
        Ok(_) => ScriptError::TooLarge(bytes_max),
        Err(Refused::Engine(error)) => return Err(error),
        Err(Refused::Script(error)) => error,
    };
    let message = failure.to_string();
    emitted.failure.get_or_insert(failure);
    Err(Exception::throw_message(ctx, &message))
}
