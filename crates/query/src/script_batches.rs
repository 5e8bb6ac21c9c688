//! Runs a script on several documents together.
//!
//! A script runs in another process, and to wake that takes longer than most scripts do. So what
//! asks scripts about one document after the other has [several of them](BatchReader) asked
//! together:
//!
//! 1. Each is asked as far as its first call, which is noted ([`BatchedCalls`]). All that were
//!    noted are made by one message, and each document is asked again, and answered so far. That
//!    goes on until each has an outcome.
//! 2. Outcomes are in the order of the documents, errors too; of those behind an error there is
//!    none.
//! 3. Where calls take long together the place where they are made answers the first of them only:
//!    the documents of the others wait.
//! 4. From one document on they are twice as many each time: no more are asked than were before.
//!
//! *Surprises*: expressions are evaluated once more for each call. A script that counts its calls
//! may be asked about documents that are never read.

use std::collections::VecDeque;

use frond_script::Call;

use crate::batched_calls::{BatchedCalls, NextCall};
use crate::error::QueryError;
use crate::memory::RequestMemory;

/// The number of documents that are asked together at most, unless their bytes are too many.
const COUNT_MAX: usize = 256;
const BYTES_MAX: usize = 256 << 10;

type Outcomes<O> = Vec<Option<Result<O, QueryError>>>;

/// Returns the outcomes of `evaluate` for the first of `count` documents, one at least, by their
/// positions; none follows an error.
fn together<O>(
    memory: &RequestMemory,
    mut count: usize,
    evaluate: &dyn Fn(usize) -> Result<O, QueryError>,
) -> Vec<Result<O, QueryError>> {
    if count == 1 {
        return vec![evaluate(0)];
    }
    let mut outcomes: Outcomes<O> = (0..count).map(|_| None).collect();
    let mut noted: Vec<BatchedCalls> = (0..count).map(|_| BatchedCalls::default()).collect();
    let mut charge = memory.charge();
    let mut answered_bytes = 0;
    loop {
        let calls = note(memory, &mut count, &mut outcomes, &mut noted, evaluate);
        let Some((first, globals)) = calls.first().map(|(at, call)| (*at, &call.globals)) else {
            break;
        };
        let sent = calls
            .iter()
            .map(|(_, call)| Call::read(call.message.view()).expect("it was written so"));
        match memory.run_scripts(sent.collect(), globals.as_ref()) {
            Ok(answers) => {
                count = calls.get(answers.len()).map_or(count, |(position, _)| *position);
                for ((position, call), answer) in calls.into_iter().zip(answers) {
                    answered_bytes += answer.as_ref().map_or(0, |value| value.bytes());
                    noted[position].push(call.message, answer);
                }
                if let Err(error) = charge.cover(answered_bytes) {
                    (outcomes[first], count) = (Some(Err(error)), first + 1);
                }
            }
            Err(error) => (outcomes[first], count) = (Some(Err(error)), first + 1),
        }
    }
    outcomes.truncate(count);
    outcomes.into_iter().map(|outcome| outcome.expect("each was asked to its end")).collect()
}

/// Asks those that have no outcome, as far as their next calls. Behind an error there are no more.
fn note<O>(
    memory: &RequestMemory,
    count: &mut usize,
    outcomes: &mut Outcomes<O>,
    noted: &mut [BatchedCalls],
    evaluate: &dyn Fn(usize) -> Result<O, QueryError>,
) -> Vec<(usize, NextCall)> {
    let mut calls = Vec::new();
    for position in 0..*count {
        if outcomes[position].is_some() {
            continue;
        }
        memory.note_calls(Some(std::mem::take(&mut noted[position])));
        let outcome = evaluate(position);
        let mut after = memory.note_calls(None).unwrap_or_default();
        let next = after.take_next();
        noted[position] = after;
        if let Some(next) = next {
            calls.push((position, next));
            continue;
        }
        let fails = outcome.is_err();
        outcomes[position] = Some(outcome);
        if fails {
            *count = position + 1;
            break;
        }
    }
    calls
}

/// Documents, or what holds them, that are read ahead and asked together.
#[derive(Debug)]
pub struct BatchReader<T, O, E> {
    waiting: VecDeque<T>,
    /// The outcomes of the first that wait.
    outcomes: VecDeque<Result<O, QueryError>>,
    /// The error of reading, behind those that wait.
    failed: Option<E>,
    has_ended: bool,
    count_max: usize,
}

impl<T, O, E> Default for BatchReader<T, O, E> {
    fn default() -> BatchReader<T, O, E> {
        BatchReader {
            waiting: VecDeque::new(),
            outcomes: VecDeque::new(),
            failed: None,
            has_ended: false,
            count_max: 1,
        }
    }
}

impl<T, O, E: From<QueryError>> BatchReader<T, O, E> {
    /// The next document that `read` gives, along with its length, and what came of `evaluate`.
    ///
    /// # Errors
    /// An error of `read` or `evaluate`. No more than that is to be asked for.
    pub fn next(
        &mut self,
        memory: &RequestMemory,
        read: &mut dyn FnMut() -> Result<Option<(T, usize)>, E>,
        evaluate: &dyn Fn(&T) -> Result<O, QueryError>,
    ) -> Result<Option<(T, O)>, E> {
        if self.outcomes.is_empty() {
            self.fill(read);
            if !self.waiting.is_empty() {
                let evaluate = |position: usize| evaluate(&self.waiting[position]);
                self.outcomes = together(memory, self.waiting.len(), &evaluate).into();
            }
        }
        match (self.waiting.pop_front(), self.outcomes.pop_front()) {
            (Some(document), Some(outcome)) => Ok(Some((document, outcome?))),
            _ => self.failed.take().map_or(Ok(None), Err),
        }
    }

    fn fill(&mut self, read: &mut dyn FnMut() -> Result<Option<(T, usize)>, E>) {
        let mut bytes_read = 0;
        while self.waiting.len() < self.count_max && bytes_read < BYTES_MAX && !self.has_ended {
            match read() {
                Ok(Some((document, bytes))) => {
                    bytes_read += bytes;
                    self.waiting.push_back(document);
                }
                Ok(None) => self.has_ended = true,
                Err(error) => (self.has_ended, self.failed) = (true, Some(error)),
            }
        }
        self.count_max = (2 * self.count_max).min(COUNT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use crate::script::Script;
    use frond_doc::{Value, ValueBuf};
    use frond_store::budget::Reservation;
    use std::cell::Cell;

    type Numbers = BatchReader<i32, Vec<ValueBuf>, QueryError>;

    fn memory() -> RequestMemory {
        RequestMemory::new(Reservation::new(1 << 20, None), None)
    }

    /// A script for each of `sources`, of a number and of what the script before gave.
    fn chain(
        memory: &RequestMemory,
        sources: &[&str],
        number: i32,
    ) -> Result<Vec<ValueBuf>, QueryError> {
        let mut results = vec![Value::Int32(number).to_buf()];
        for source in sources {
            let arguments = results.iter().map(ValueBuf::as_value);
            let result = Script::new(source).call(memory, None, arguments)?;
            results.push(result);
        }
        Ok(results)
    }

    #[test]
    fn each_is_answered_as_by_itself() {
        let sources = ["x => x * 2", "(x, y) => x + y", "(x, y, z) => [x, y, z]"];
        let (together, alone) = (memory(), memory());
        let mut numbers = 0..1000;
        let mut read = || Ok(numbers.next().map(|number| (number, 4)));
        let evaluate = |number: &i32| chain(&together, &sources[..*number as usize % 4], *number);
        let mut ahead = Numbers::default();
        let mut count = 0;
        while let Some((number, found)) = ahead.next(&together, &mut read, &evaluate).unwrap() {
            assert_eq!(number, count);
            count += 1;
            let expected = chain(&alone, &sources[..number as usize % 4], number).unwrap();
            assert_eq!(found, expected, "{number}");
        }
        assert_eq!(count, 1000);
    }

    #[test]
    fn an_error_comes_where_its_document_stands() {
        let memory = memory();
        for failing in [0, 1, 2, 5, 100] {
            let source = format!("x => {{ if (x === {failing}) throw 'x'; return x; }}");
            let mut numbers = 0..200;
            let mut read = || Ok(numbers.next().map(|number| (number, 4)));
            let evaluate = |number: &i32| chain(&memory, &[&source], *number);
            let mut ahead = Numbers::default();
            for number in 0..failing {
                let next = ahead.next(&memory, &mut read, &evaluate).unwrap();
                assert_eq!(next.map(|(number, _)| number), Some(number), "{failing}");
            }
            let error = ahead.next(&memory, &mut read, &evaluate).expect_err("it throws");
            assert_eq!(error.code, Code::JSInterpreterFailure);
        }
    }

    #[test]
    fn a_read_error_comes_after_the_documents_before_it() {
        let memory = memory();
        let mut number = 0;
        let mut read = || {
            number += 1;
            let failed = || QueryError::new(Code::BadValue, "read");
            if number < 6 { Ok(Some((number, 4))) } else { Err(failed()) }
        };
        let evaluate = |number: &i32| chain(&memory, &["x => x"], *number);
        let mut ahead = Numbers::default();
        for _ in 1..6 {
            assert!(ahead.next(&memory, &mut read, &evaluate).unwrap().is_some());
        }
        assert_eq!(
            ahead.next(&memory, &mut read, &evaluate).expect_err("read").code,
            Code::BadValue
        );
        assert!(ahead.next(&memory, &mut read, &evaluate).unwrap().is_none());
    }

    #[test]
    fn no_more_are_read_ahead_than_were_asked_before() {
        let memory = memory();
        let count_read = Cell::new(0);
        let mut read = || {
            count_read.set(count_read.get() + 1);
            Ok(Some((count_read.get(), 4)))
        };
        let evaluate = |number: &i32| chain(&memory, &["x => x"], *number);
        let mut ahead = Numbers::default();
        for count in 1..2000 {
            ahead.next(&memory, &mut read, &evaluate).unwrap();
            let most = (2 * count - 1).min(count + COUNT_MAX as i32);
            assert!(count_read.get() <= most, "{} for {count}", count_read.get());
        }
        let mut large = Numbers::default();
        let mut read = || {
            count_read.set(count_read.get() + 1);
            Ok(Some((1, BYTES_MAX / 2)))
        };
        (0..20).for_each(|_| drop(large.next(&memory, &mut read, &evaluate).unwrap()));
        count_read.set(0);
        (0..20).for_each(|_| drop(large.next(&memory, &mut read, &evaluate).unwrap()));
        assert!(count_read.get() <= 22, "long documents wait for no more than another");
    }

    #[test]
    fn a_call_that_differs_each_time_is_made_by_itself() {
        let memory = memory();
        let count = Cell::new(0);
        let evaluate = |_: &i32| {
            count.set(count.get() + 1);
            chain(&memory, &["x => x", "(x, y) => x - y"], count.get())
        };
        let mut numbers = 0..10;
        let mut read = || Ok(numbers.next().map(|number| (number, 4)));
        let mut ahead = Numbers::default();
        while let Some((_, found)) = ahead.next(&memory, &mut read, &evaluate).unwrap() {
            assert_eq!(found[1].as_value().as_integer(), found[0].as_value().as_integer());
            assert_eq!(found[2].as_value(), Value::Double(0.0));
        }
    }
}
