//! Server-side JavaScript: functions of clients over BSON values, in a sandbox.
//!
//! The engine is QuickJS-ng (crate `rquickjs`). Nothing outside this crate knows it.
//!
//! 1. A [`ScriptHost`] belongs to one request, and so does its [`Engine`]: a heap of its own, so
//!    that no global, prototype or cache outlives the request or is seen by another.
//! 2. It has no I/O, modules, timers, promises or proxies: ECMAScript's other objects, and the
//!    types and helpers that MongoDB gives scripts (`scripts/types.js`).
//! 3. Its heap and its stack are bounded, and so is what it hands out.
//! 4. A server's scripts run in processes ([`run_in`], [`worker`]) that hold one request's engine,
//!    have no rights and are killed when their request is to stop. So neither a step that takes
//!    long nor a fault of the engine reaches others.
//! 5. Without a program for these, calls run on threads that a request may leave behind
//!    ([`threads`]); the engine asks whether to go on each ten thousand steps, its regular
//!    expressions too.
//! 6. Loops of the engine's own library that don't ask, over what may be long without taking
//!    memory (arrays of holes, what claims to be an array), are refused or written as scripts
//!    (`scripts/guards.js`).
//!
//! Reading order: [`engine`] (calls), `read` (BSON to values of scripts), `write` (back),
//! `message` (a call and its answer as documents), `place` (where it runs), `processes` and
//! [`worker`] (both ends), [`threads`].
//!
//! *Surprises*: a number that a script makes is a double, unless it stands in a document that came
//! in, where there was an integer of 32 bits before; 64-bit integers are objects (`NumberLong`).
//! `Date.now` and `Math.random` are the machine's, not `store::io`'s: nothing that is stored
//! depends on them but by a client's wish.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod engine;
mod host;
mod message;
mod processes;
mod read;
mod socket;
#[cfg(test)]
mod tests;
pub mod threads;
mod turn;
pub mod worker;
mod write;

pub use engine::{Engine, KeepGoing};
pub use host::ScriptHost;
pub use message::{Answer, Answers, Batch, Call, ResultKind};
pub use processes::{COMMAND, run_in};
pub use turn::Turn;

/// The limits of a script's values and results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of bytes a script's values may take.
    pub heap_bytes: usize,
    /// The number of bytes of BSON that one call may hand out.
    pub result_bytes: usize,
}

impl Limits {
    /// The largest: a document goes in and out with what a script makes of it.
    pub const LARGEST: Limits =
        Limits { heap_bytes: 64 << 20, result_bytes: (16 << 20) + (16 << 10) };

    /// The largest, and smaller ones for where memory is short, down to what an ordinary script on
    /// short documents takes several times over.
    pub fn sizes() -> impl Iterator<Item = Limits> {
        let Limits { heap_bytes, result_bytes } = Limits::LARGEST;
        (0..5).map(move |halved| Limits {
            heap_bytes: heap_bytes >> halved,
            result_bytes: result_bytes >> halved,
        })
    }
}

/// The reason why a script has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It threw this, or can't be compiled.
    #[error("{0}")]
    Thrown(String),
    /// It was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// Its values take more than so many bytes.
    #[error("JavaScript code ran out of memory: its values take more than {0} bytes")]
    OutOfMemory(usize),
    /// Its results take more than so many bytes.
    #[error("what JavaScript code returned or emitted takes more than {0} bytes")]
    TooLarge(usize),
    /// Its result is no BSON: MongoDB's code, and the reason.
    #[error("{1}")]
    NoBson(i32, String),
    /// The place where it ran is gone: a fault of the engine, or the system gave it no process.
    #[error("the JavaScript engine ended unexpectedly")]
    Ended,
}
