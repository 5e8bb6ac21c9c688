//! The cost of queries: documents a second of one core, in cache, beside SQLite and PostgreSQL.
//!
//!     cargo run --release -p frond-bench-query --features peers -- speed
//!     cargo run --release -p frond-bench-query -- memory
//!
//! Reading order: [`reading`] (the documents), [`speed`] (the requests, and how they are timed),
//! [`memory`] (a sort, a group and a window over more than fits), [`frond`], `peers`.

mod frond;
mod memory;
#[cfg(feature = "peers")]
mod peers;
mod reading;
mod speed;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The error type of all parts of the benchmark.
mod target {
    /// The reason why something could not be measured.
    pub type Failure = Box<dyn std::error::Error + Send + Sync>;
}

use target::Failure;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["speed", rest @ ..] => speed::run(rest),
        ["memory", rest @ ..] => memory::run(rest),
        _ => Err("usage: speed [COUNT [CASE]] | memory [MEGABYTES [CASE]]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
