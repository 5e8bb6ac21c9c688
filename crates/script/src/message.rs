//! What is asked of the place where a script runs, and what it answers: a document each way, which
//! begins with its length.

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};

use crate::ScriptError;

const ASKED: &str = "asked";
const SOURCE: &str = "source";
const THIS: &str = "this";
const ARGUMENTS: &str = "arguments";
const GLOBALS: &str = "globals";
const MEASURES: &str = "measures";

const HEAP_BYTES: &str = "heapBytes";
const RESULT: &str = "result";
const FAILED: &str = "failed";
const TEXT: &str = "text";
const CODE: &str = "code";

/// What of a call is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Its result.
    Result,
    /// Whether its result counts as true in a script.
    Truth,
    /// The pairs `{k, v}` that it emits, as an array.
    Emitted,
}

/// A call of a function, by its source, or of the expression or the statements that are its body.
#[derive(Clone, Debug)]
pub struct Call<'v> {
    /// What is asked for.
    pub asked: Asked,
    /// The source.
    pub source: &'v str,
    /// The function's `this`.
    pub this: Option<Document<'v>>,
    /// The function's arguments.
    pub arguments: Vec<Value<'v>>,
    /// Becomes global before, a variable each field.
    pub globals: Option<Document<'v>>,
    /// Whether to tell how much the values of scripts take.
    pub measures: bool,
}

impl<'v> Call<'v> {
    /// A call without arguments.
    pub fn new(asked: Asked, source: &'v str, this: Option<Document<'v>>) -> Call<'v> {
        Call { asked, source, this, arguments: Vec::new(), globals: None, measures: false }
    }

    /// The call as a document.
    pub(crate) fn write(&self) -> DocumentBuf {
        let mut message = DocumentBuilder::new();
        message.append(ASKED, Value::Int32(self.asked as i32));
        message.append(SOURCE, Value::String(self.source));
        if let Some(this) = self.this {
            message.append(THIS, Value::Document(this));
        }
        message.begin_array(ARGUMENTS);
        for argument in &self.arguments {
            message.push(*argument);
        }
        message.end();
        if let Some(globals) = self.globals {
            message.append(GLOBALS, Value::Document(globals));
        }
        message.append(MEASURES, Value::Boolean(self.measures));
        message.build()
    }

    /// The call that a document tells of.
    pub(crate) fn read(message: Document<'v>) -> Option<Call<'v>> {
        let document = |name| message.get(name).and_then(|value| value.as_document());
        let asked = [Asked::Result, Asked::Truth, Asked::Emitted];
        Some(Call {
            asked: *asked.get(usize::try_from(message.get(ASKED)?.as_integer()?).ok()?)?,
            source: message.get(SOURCE)?.as_str()?,
            this: document(THIS),
            arguments: message.get(ARGUMENTS)?.as_array().as_ref().map(Array::iter)?.collect(),
            globals: document(GLOBALS),
            measures: message.get(MEASURES) == Some(Value::Boolean(true)),
        })
    }
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was asked for.
    pub result: Result<ValueBuf, ScriptError>,
    /// How many bytes the values of scripts take, if that was asked.
    pub heap_bytes: Option<usize>,
}

impl Answer {
    pub(crate) fn write(&self) -> DocumentBuf {
        let mut message = DocumentBuilder::new();
        if let Some(bytes) = self.heap_bytes {
            message.append(HEAP_BYTES, Value::Int64(bytes as i64));
        }
        match &self.result {
            Ok(value) => message.append(RESULT, value.as_value()),
            Err(error) => write_error(error, &mut message),
        };
        message.build()
    }

    /// None if it is no answer: its place is not to be trusted.
    pub(crate) fn read(message: Document<'_>) -> Option<Answer> {
        let heap_bytes = message.get(HEAP_BYTES).and_then(|value| value.as_integer());
        let result = match message.get(RESULT) {
            Some(value) => Ok(value.to_buf()),
            None => Err(read_error(message)?),
        };
        Some(Answer { result, heap_bytes: heap_bytes.and_then(|bytes| bytes.try_into().ok()) })
    }
}

fn write_error<'m>(
    error: &ScriptError,
    message: &'m mut DocumentBuilder,
) -> &'m mut DocumentBuilder {
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
        ScriptError::OutOfMemory => "outOfMemory",
        ScriptError::TooLarge => "tooLarge",
        ScriptError::Ended => "ended",
    };
    message.append(FAILED, Value::String(kind))
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
        "outOfMemory" => ScriptError::OutOfMemory,
        "tooLarge" => ScriptError::TooLarge,
        "ended" => ScriptError::Ended,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::extended_json::parse;

    #[test]
    fn a_call_is_read_as_it_was_written() {
        let (this, globals) = (parse(r#"{"a": 1}"#).unwrap(), parse(r#"{"g": [1]}"#).unwrap());
        let call = Call {
            arguments: vec![Value::Int64(1), Value::Undefined, Value::String("x")],
            globals: Some(globals.view()),
            measures: true,
            ..Call::new(Asked::Emitted, "emit(1, 2)", Some(this.view()))
        };
        let message = call.write();
        let read = Call::read(message.view()).expect("it is a call");
        assert_eq!(format!("{read:?}"), format!("{call:?}"));
        let bare = Call::new(Asked::Truth, "1", None);
        let message = bare.write();
        assert_eq!(format!("{:?}", Call::read(message.view()).unwrap()), format!("{bare:?}"));
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        for result in [
            Ok(Value::DateTime(-1).to_buf()),
            Err(ScriptError::Thrown("no".to_owned())),
            Err(ScriptError::NoBson(17279, "deep".to_owned())),
            Err(ScriptError::Interrupted),
            Err(ScriptError::OutOfMemory),
            Err(ScriptError::TooLarge),
            Err(ScriptError::Ended),
        ] {
            for heap_bytes in [None, Some(1 << 20)] {
                let answer = Answer { result: result.clone(), heap_bytes };
                assert_eq!(Answer::read(answer.write().view()), Some(answer));
            }
        }
    }

    #[test]
    fn what_is_neither_is_known() {
        for text in ["{}", r#"{"failed": "x"}"#, r#"{"failed": "noBson", "code": "x"}"#] {
            let message = parse(text).unwrap();
            assert!(Answer::read(message.view()).is_none(), "{text}");
            assert!(Call::read(message.view()).is_none(), "{text}");
        }
    }
}
