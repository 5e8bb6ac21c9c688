//! Requests to the place where scripts run, and its answers: a document each way, which begins with
//! its length.
//!
//! Calls go together, since waking another process takes longer than a short script; answers may be
//! those of the first of them only.

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};

use crate::{Limits, ScriptError};

const CALLS: &str = "calls";
const HEAP_BYTES_MAX: &str = "heapBytesMax";
const RESULT_BYTES_MAX: &str = "resultBytesMax";

const RESULT_KIND: &str = "resultKind";
const SOURCE: &str = "source";
const THIS: &str = "this";
const ARGUMENTS: &str = "arguments";
const GLOBALS: &str = "globals";
const MEASURES: &str = "measures";

const ANSWERS: &str = "answers";
const HEAP_BYTES: &str = "heapBytes";
const RESULT: &str = "result";
const FAILED: &str = "failed";
const TEXT: &str = "text";
const CODE: &str = "code";
const BYTES: &str = "bytes";

/// The part of a call's result that is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultKind {
    /// Its result.
    Result,
    /// The truth value of its result, as a script would take it.
    Truth,
    /// The pairs `{k, v}` that it emits, as an array.
    Emitted,
}

/// A call of a function, by its source, or of the expression or the statements that are its body.
#[derive(Clone, Debug)]
pub struct Call<'v> {
    /// The wanted result.
    pub result_kind: ResultKind,
    /// The source.
    pub source: &'v str,
    /// The function's `this`.
    pub this: Option<Document<'v>>,
    /// The function's arguments.
    pub arguments: Vec<Value<'v>>,
}

/// Calls that are made one after the other.
#[derive(Clone, Debug)]
pub struct Batch<'v> {
    /// The calls.
    pub calls: Vec<Call<'v>>,
    /// Becomes global before, a variable each field.
    pub globals: Option<Document<'v>>,
    /// Whether to measure how much the values of scripts take.
    pub measures: bool,
    /// The limits of each call.
    pub limits: Limits,
}

impl<'v> Call<'v> {
    /// A call without arguments.
    pub fn new(result_kind: ResultKind, source: &'v str, this: Option<Document<'v>>) -> Call<'v> {
        Call { result_kind, source, this, arguments: Vec::new() }
    }

    /// The call as a document.
    pub fn write(&self) -> DocumentBuf {
        let mut message = DocumentBuilder::new();
        self.write_fields(&mut message);
        message.build()
    }

    fn write_fields(&self, message: &mut DocumentBuilder) {
        message.append(RESULT_KIND, Value::Int32(self.result_kind as i32));
        message.append(SOURCE, Value::String(self.source));
        if let Some(this) = self.this {
            message.append(THIS, Value::Document(this));
        }
        message.begin_array(ARGUMENTS);
        for argument in &self.arguments {
            message.push(*argument);
        }
        message.end();
    }

    /// The call in a document; `None` if it is none.
    pub fn read(message: Document<'v>) -> Option<Call<'v>> {
        let kinds = [ResultKind::Result, ResultKind::Truth, ResultKind::Emitted];
        Some(Call {
            result_kind: *kinds
                .get(usize::try_from(message.get(RESULT_KIND)?.as_integer()?).ok()?)?,
            source: message.get(SOURCE)?.as_str()?,
            this: message.get(THIS).and_then(|value| value.as_document()),
            arguments: message.get(ARGUMENTS)?.as_array().as_ref().map(Array::iter)?.collect(),
        })
    }
}

impl<'v> Batch<'v> {
    /// The calls as one document.
    pub(crate) fn write(&self) -> DocumentBuf {
        let mut message = DocumentBuilder::new();
        message.begin_array(CALLS);
        for call in &self.calls {
            call.write_fields(message.push_begin_document());
            message.end();
        }
        message.end();
        if let Some(globals) = self.globals {
            message.append(GLOBALS, Value::Document(globals));
        }
        message.append(MEASURES, Value::Boolean(self.measures));
        message.append(HEAP_BYTES_MAX, Value::Int64(self.limits.heap_bytes as i64));
        message.append(RESULT_BYTES_MAX, Value::Int64(self.limits.result_bytes as i64));
        message.build()
    }

    /// The calls in a document.
    pub(crate) fn read(message: Document<'v>) -> Option<Batch<'v>> {
        let calls = message.get(CALLS)?.as_array()?;
        let calls = calls.iter().map(|call| Call::read(call.as_document()?));
        Some(Batch {
            calls: calls.collect::<Option<_>>()?,
            globals: message.get(GLOBALS).and_then(|value| value.as_document()),
            measures: message.get(MEASURES) == Some(Value::Boolean(true)),
            limits: Limits {
                heap_bytes: size(message, HEAP_BYTES_MAX)?,
                result_bytes: size(message, RESULT_BYTES_MAX)?,
            },
        })
    }
}

fn size(message: Document<'_>, name: &str) -> Option<usize> {
    message.get(name)?.as_integer()?.try_into().ok()
}

/// The outcome of a call: the wanted result or an error.
pub type Answer = Result<ValueBuf, ScriptError>;

/// The outcomes of a batch of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// The answers to the first calls, to one at least: none follows an error.
    pub results: Vec<Answer>,
    /// The number of bytes the values of scripts take, if that was asked.
    pub heap_bytes: Option<usize>,
}

impl Answers {
    pub(crate) fn write(&self) -> DocumentBuf {
        let mut message = DocumentBuilder::new();
        if let Some(bytes) = self.heap_bytes {
            message.append(HEAP_BYTES, Value::Int64(bytes as i64));
        }
        message.begin_array(ANSWERS);
        for result in &self.results {
            let answer = message.push_begin_document();
            match result {
                Ok(value) => drop(answer.append(RESULT, value.as_value())),
                Err(error) => write_error(error, answer),
            }
            message.end();
        }
        message.end();
        message.build()
    }

    /// `None` if it is none of `count` calls: its place is not to be trusted.
    pub(crate) fn read(message: Document<'_>, count: usize) -> Option<Answers> {
        let results = message.get(ANSWERS)?.as_array()?;
        let results = results.iter().map(|answer| {
            let answer = answer.as_document()?;
            Some(match answer.get(RESULT) {
                Some(value) => Ok(value.to_buf()),
                None => Err(read_error(answer)?),
            })
        });
        let results: Vec<Answer> = results.collect::<Option<_>>()?;
        let is_whole = (1..=count).contains(&results.len());
        is_whole.then(|| Answers { results, heap_bytes: size(message, HEAP_BYTES) })
    }
}

fn write_error(error: &ScriptError, message: &mut DocumentBuilder) {
    let kind = match error {
        ScriptError::Thrown(text) => {
            message.append(TEXT, Value::String(text));
            "thrown"
        }
        ScriptError::NoBson(code, text) => {
            message.append(CODE, Value::Int32(*code));
            message.append(TEXT, Value::String(text));
            "noBson"
        }
        ScriptError::Interrupted => "interrupted",
        ScriptError::OutOfMemory(bytes) => {
            message.append(BYTES, Value::Int64(*bytes as i64));
            "outOfMemory"
        }
        ScriptError::TooLarge(bytes) => {
            message.append(BYTES, Value::Int64(*bytes as i64));
            "tooLarge"
        }
        ScriptError::Ended => "ended",
    };
    message.append(FAILED, Value::String(kind));
}

fn read_error(message: Document<'_>) -> Option<ScriptError> {
    let text = || Some(message.get(TEXT)?.as_str()?.to_owned());
    Some(match message.get(FAILED)?.as_str()? {
        "thrown" => ScriptError::Thrown(text()?),
        "noBson" => {
            let code = message.get(CODE)?.as_integer()?;
            ScriptError::NoBson(code.try_into().ok()?, text()?)
        }
        "interrupted" => ScriptError::Interrupted,
        "outOfMemory" => ScriptError::OutOfMemory(size(message, BYTES)?),
        "tooLarge" => ScriptError::TooLarge(size(message, BYTES)?),
        "ended" => ScriptError::Ended,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::extended_json::parse;

    #[test]
    fn calls_are_read_as_they_were_written() {
        let (this, globals) = (parse(r#"{"a": 1}"#).unwrap(), parse(r#"{"g": [1]}"#).unwrap());
        let call = Call {
            arguments: vec![Value::Int64(1), Value::Undefined, Value::String("x")],
            ..Call::new(ResultKind::Emitted, "emit(1, 2)", Some(this.view()))
        };
        let bare = Call::new(ResultKind::Truth, "1", None);
        let message = bare.write();
        assert_eq!(format!("{:?}", Call::read(message.view()).unwrap()), format!("{bare:?}"));
        let limits = Limits { heap_bytes: 1 << 20, result_bytes: 7 };
        for globals in [None, Some(globals.view())] {
            let calls = vec![call.clone(), bare.clone()];
            let batch = Batch { calls, globals, measures: globals.is_some(), limits };
            let message = batch.write();
            let read = Batch::read(message.view()).expect("they are calls");
            assert_eq!(format!("{read:?}"), format!("{batch:?}"));
        }
    }

    #[test]
    fn answers_are_read_as_they_were_written() {
        let results = vec![
            Ok(Value::DateTime(-1).to_buf()),
            Err(ScriptError::Thrown("no".to_owned())),
            Err(ScriptError::NoBson(17279, "deep".to_owned())),
            Err(ScriptError::Interrupted),
            Err(ScriptError::OutOfMemory(1 << 20)),
            Err(ScriptError::TooLarge(2)),
            Err(ScriptError::Ended),
        ];
        let count = results.len();
        for heap_bytes in [None, Some(1 << 20)] {
            let answers = Answers { results: results.clone(), heap_bytes };
            let message = answers.write();
            assert_eq!(Answers::read(message.view(), count + 1), Some(answers));
            assert_eq!(Answers::read(message.view(), count - 1), None, "of more calls");
        }
        assert_eq!(Answers::read(Answers::default().write().view(), 1), None, "of no call");
    }

    #[test]
    fn unknown_messages_are_recognised() {
        for text in ["{}", r#"{"answers": [{"failed": "x"}]}"#, r#"{"answers": [1]}"#] {
            let message = parse(text).unwrap();
            assert!(Answers::read(message.view(), 1).is_none(), "{text}");
            assert!(Call::read(message.view()).is_none(), "{text}");
            assert!(Batch::read(message.view()).is_none(), "{text}");
        }
    }
}
