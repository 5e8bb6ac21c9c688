//! The way from blocking callers to asynchronous code: one runtime for all clients of this process.

use std::future::Future;
use std::sync::{Once, OnceLock};

use tokio::runtime::{Builder, Runtime};

/// Threads that wait for the network; they compute nothing but TLS.
const THREADS: usize = 2;

/// Runs `future` to its end. Not to be called from asynchronous code.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("frond-remote").enable_all();
        builder.build().expect("a process that can't start two threads can't go on")
    });
    runtime.block_on(future)
}

/// Chooses the cryptography that TLS uses in this process: `ring`.
pub(crate) fn choose_cryptography() {
    static CHOSEN: Once = Once::new();
    CHOSEN.call_once(|| {
        // It may have been chosen by the application that this is a part of.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
