//! A process that runs scripts, seen from inside: what it gives up before the first, and how it
//! answers.
//!
//! The incoming document says what to do: calls, or, if it is empty, to forget the engine. It ends
//! when the other end is closed, also in the midst of a call.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use frond_doc::DocumentBuf;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::engine::Engine;
use crate::message::{Answers, Batch};
use crate::socket::receive;

/// The address space: of the program, of what the allocators set aside, and beyond the heap what a
/// call brings and hands out, both ways of writing it.
const ADDRESSES_MAX: u64 = 2 << 30;
/// No more descriptors than one, which there is.
const OPEN_MAX: u64 = 1;

/// Answers calls on the standard input, which is a socket, until the other end is closed.
///
/// # Errors
/// If rights can't be given up, the socket fails, or what comes are no calls.
pub fn run() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    end_with(&socket)?;
    give_up_rights()?;
    serve(&socket)
}

/// Ends the process when the other end is closed.
#[expect(clippy::disallowed_methods, reason = "it ends with the process")]
fn end_with(socket: &UnixStream) -> io::Result<()> {
    let socket = socket.try_clone()?;
    let watch = move || {
        // An error or the end: nothing else is waited for.
        while let Err(rustix::io::Errno::INTR) =
            poll(&mut [PollFd::new(&socket, PollFlags::empty())], None)
        {}
        std::process::exit(0)
    };
    thread::Builder::new().spawn(watch).map(drop)
}

/// Gives up the rights to open anything, to write to a file, or to begin anything, and bounds
/// memory.
fn give_up_rights() -> io::Result<()> {
    if cfg!(target_os = "linux") {
        limit(Resource::As, ADDRESSES_MAX)?;
    }
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
        (Resource::Nofile, OPEN_MAX),
    ] {
        limit(resource, most)?;
    }
    Ok(())
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Answers calls until the other end is closed.
pub(crate) fn serve(mut socket: &UnixStream) -> io::Result<()> {
    let mut engine = None;
    loop {
        let message = match receive(socket, usize::MAX, |step| step) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            received => DocumentBuf::from_validated(received?.into()),
        };
        if message.iter().next().is_none() {
            engine = None;
            continue;
        }
        let batch = Batch::read(message.view()).ok_or(io::ErrorKind::InvalidData)?;
        socket.write_all(answer(&mut engine, &batch).write().as_bytes())?;
    }
}

fn answer(engine: &mut Option<Engine>, batch: &Batch<'_>) -> Answers {
    let made = match engine.take() {
        Some(engine) => Ok(engine),
        // The parent ends the process where it is to stop.
        None => Engine::new(Arc::new(|| true)),
    };
    match made {
        Ok(made) => engine.insert(made).answer(batch),
        Err(error) => Answers { results: vec![Err(error)], heap_bytes: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Call, ResultKind};
    use crate::{Limits, ScriptError, processes::passed};
    use frond_doc::Value;

    fn call(mut socket: &UnixStream, sources: &[&str], measures: bool) -> Answers {
        let calls = sources.iter().map(|source| Call::new(ResultKind::Result, source, None));
        let (calls, limits) = (calls.collect(), Limits::LARGEST);
        let batch = Batch { calls, globals: None, measures, limits };
        socket.write_all(batch.write().as_bytes()).unwrap();
        let bytes = receive(socket, 1 << 20, |step| passed(step, &|| true)).unwrap();
        let answers = DocumentBuf::validated_answer(bytes.into()).unwrap();
        Answers::read(answers.view(), sources.len()).expect("it is an answer")
    }

    #[test]
    fn a_worker_keeps_its_engine_until_it_is_to_forget_it() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            let served = scope.spawn(move || serve(&theirs));
            let number = |number| Ok(Value::Double(number).to_buf());
            let answers = call(&ours, &["kept = 1", "kept + 1"], false);
            assert_eq!(answers.results, [number(1.0), number(2.0)]);
            assert_eq!(call(&ours, &["kept + 2"], false).results, [number(3.0)]);
            (&ours).write_all(DocumentBuf::empty().as_bytes()).unwrap();
            let answers = call(&ours, &["1", "kept", "2"], false);
            assert!(
                matches!(&answers.results[..], [Ok(_), Err(ScriptError::Thrown(_))]),
                "none is made behind one that fails: {answers:?}"
            );
            let answers = call(&ours, &["1"], true);
            assert!(answers.heap_bytes.is_some_and(|bytes| bytes > 100_000), "{answers:?}");
            drop(ours);
            served.join().unwrap().unwrap();
        });
    }

    #[test]
    fn calls_that_take_long_are_answered_in_parts() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || serve(&theirs));
            let long = "const end = Date.now() + 20; while (Date.now() < end); 1";
            assert_eq!(call(&ours, &[long, "2"], false).results.len(), 1);
            let much = "'x'.repeat(1 << 17)";
            assert_eq!(call(&ours, &["1", much, "2"], false).results.len(), 2);
            drop(ours);
        });
    }

    #[test]
    fn malformed_messages_end_the_worker() {
        for bytes in
            [&[5, 0, 0, 0, 0, 4][..], &[4, 0, 0, 0], &[0; 4], b"\x0c\0\0\0\x10a\0\x01\0\0\0\0"]
        {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(bytes).unwrap();
            drop(ours);
            let is_end = bytes == [5, 0, 0, 0, 0, 4];
            assert_eq!(serve(&theirs).is_ok(), is_end, "{bytes:?}");
        }
    }
}
