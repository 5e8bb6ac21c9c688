//! `$accumulator`, and `$_internalJsReduce`, into which a `mapReduce` translates its `reduce`: what
//! clients' functions make of values.
//!
//! `accumulate` is called for many documents at once, since the state is written and read again for
//! each call. Groups aren't gathered in parts, so that `merge` is checked and never called.

use std::sync::Arc;

use frond_doc::document::EMPTY;
use frond_doc::{Array, Document, Value, ValueBuf};

use super::state::{State, cost};
use super::{Accumulator, Input, Kind};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Elements, Evaluated, Expression, Parser, Scope, Variables, failure};
use crate::memory::RequestMemory;
use crate::script::Script;

/// The number of documents whose arguments are kept for one call, unless their bytes are too many.
const WAITING_COUNT_MAX: usize = 1000;
const WAITING_BYTES_MAX: usize = 1 << 20;
/// The bytes of the values that one call of `reduce` gets.
const REDUCED_BYTES_MAX: usize = 16 << 20;

/// Calls a function for each of a list of arguments, the state before them.
const ACCUMULATE: &str = "function (source, state, calls) {
    const accumulate = __frond.compile(source);
    for (let at = 0; at < calls.length; at++) state = accumulate(state, ...calls[at]);
    return state;
}";

/// The functions of an accumulator.
#[derive(Clone, Debug)]
pub(super) enum Functions {
    /// `$accumulator`
    Custom(Arc<Custom>),
    /// `$_internalJsReduce`
    Reduce(Script),
}

/// Those of `$accumulator`.
#[derive(Debug)]
pub(super) struct Custom {
    init: Script,
    init_arguments: Option<Expression>,
    accumulate: Script,
    finalize: Option<Script>,
}

/// The state of `$accumulator`.
pub(super) struct CustomState {
    functions: Arc<Custom>,
    memory: RequestMemory,
    /// The array of the arguments of `init`.
    init_arguments: ValueBuf,
    /// The state; none before the first calls.
    state: Option<ValueBuf>,
    /// The arguments of calls that are to be made.
    waiting: Vec<ValueBuf>,
    waiting_bytes: usize,
}

impl Functions {
    /// The state of a group without documents.
    ///
    /// # Errors
    /// 4544711 if the arguments of `init` are no array.
    pub(super) fn start(
        &self,
        group: Document<'_>,
        variables: &Variables,
    ) -> Result<Box<dyn State>, QueryError> {
        let memory = variables.memory().clone();
        Ok(match self {
            Functions::Reduce(reduce) => {
                let (key, values) = (Value::Null.to_buf(), Vec::new());
                Box::new(ReduceState { reduce: reduce.clone(), memory, key, values })
            }
            Functions::Custom(functions) => {
                let functions = Arc::clone(functions);
                let scope = Scope::new(group, variables);
                let arguments = match &functions.init_arguments {
                    Some(arguments) => arguments.evaluate_in(&scope)?,
                    None => Evaluated::Borrowed(Value::Array(Array::from_validated(&EMPTY))),
                };
                let Some(array @ Value::Array(_)) = arguments.value() else {
                    let text = arguments.text();
                    let message =
                        format!("$accumulator initArgs must evaluate to an array: {text}");
                    return Err(failure(4_544_711, message));
                };
                let init_arguments = array.to_buf();
                let (state, waiting, waiting_bytes) = (None, Vec::new(), 0);
                Box::new(CustomState {
                    functions,
                    memory,
                    init_arguments,
                    state,
                    waiting,
                    waiting_bytes,
                })
            }
        })
    }
}

impl CustomState {
    /// The state behind the calls that wait.
    fn state_behind(&self) -> Result<ValueBuf, QueryError> {
        let state = match &self.state {
            Some(state) => state.clone(),
            None => {
                let arguments = self.init_arguments.as_value().as_array();
                let arguments = arguments.expect("checked at the start");
                self.functions.init.call(&self.memory, None, arguments.iter())?
            }
        };
        if self.waiting.is_empty() {
            return Ok(state);
        }
        let mut calls = Elements::uncounted();
        for arguments in &self.waiting {
            calls.push(arguments.as_value())?;
        }
        let calls = calls.finish()?;
        let source = Value::String(self.functions.accumulate.source());
        let arguments = [source, state.as_value(), calls.or_null()];
        Script::new(ACCUMULATE).call(&self.memory, None, arguments)
    }

    fn call(&mut self) -> Result<(), QueryError> {
        self.state = Some(self.state_behind()?);
        self.waiting.clear();
        self.waiting_bytes = 0;
        Ok(())
    }

    fn state_bytes(&self) -> usize {
        self.state.as_ref().map_or(0, |state| cost(state.as_value()))
    }

    fn made(&self) -> Result<Evaluated<'static>, QueryError> {
        let state = self.state_behind()?;
        Ok(Evaluated::kept(match &self.functions.finalize {
            Some(finalize) => finalize.call(&self.memory, None, [state.as_value()])?,
            None => state,
        }))
    }
}

impl State for CustomState {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(arguments @ Value::Array(_)) = value.value() else {
            let text = value.text();
            let message = format!("$accumulator accumulateArgs must evaluate to an array: {text}");
            return Err(failure(4_544_712, message));
        };
        self.waiting.push(arguments.to_buf());
        self.waiting_bytes += cost(arguments);
        let before = self.state_bytes();
        if WAITING_COUNT_MAX <= self.waiting.len() || WAITING_BYTES_MAX <= self.waiting_bytes {
            self.call()?;
            return Ok(self.state_bytes().saturating_sub(before));
        }
        Ok(cost(arguments))
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.made()
    }

    fn scripted(&self) -> Result<Option<Evaluated<'static>>, QueryError> {
        self.made().map(Some)
    }
}

/// The state of `$_internalJsReduce`.
struct ReduceState {
    reduce: Script,
    memory: RequestMemory,
    key: ValueBuf,
    values: Vec<ValueBuf>,
}

impl State for ReduceState {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let pair = match value.value() {
            None => return Ok(0),
            Some(Value::Document(pair)) => pair,
            Some(_) => {
                let found = value.type_name();
                let message =
                    format!("$_internalJsReduce requires a document argument, but found {found}");
                return Err(failure(31242, message));
            }
        };
        let (Some(key), Some(value), 2) = (pair.get("k"), pair.get("v"), pair.iter().count())
        else {
            let message = "$_internalJsReduce requires the 'data' argument to have a 'k' and 'v' \
                           field";
            return Err(failure(31251, message));
        };
        self.key = key.to_buf();
        self.values.push(value.to_buf());
        Ok(cost(value))
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.reduced()
    }

    fn scripted(&self) -> Result<Option<Evaluated<'static>>, QueryError> {
        self.reduced().map(Some)
    }
}

impl ReduceState {
    /// Values that are too many for one call are reduced with what the calls before made of
    /// others; the last ones come first, as in MongoDB.
    fn reduced(&self) -> Result<Evaluated<'static>, QueryError> {
        let (mut left, mut made) = (&self.values[..], None);
        loop {
            let (mut count, mut bytes) = (0, 0);
            let mut reduced = Elements::uncounted();
            for value in made.iter().chain(left.iter().rev()) {
                bytes += cost(value.as_value());
                if REDUCED_BYTES_MAX < bytes {
                    break;
                }
                reduced.push(value.as_value())?;
                count += 1;
            }
            let made_count = usize::from(made.is_some());
            let is_all = count == left.len() + made_count;
            if !is_all && count < 2 {
                return Err(failure(31392, "Value too large to reduce"));
            }
            let reduced = reduced.finish()?;
            let arguments = [self.key.as_value(), reduced.or_null()];
            let result = self.reduce.call(&self.memory, None, arguments)?;
            if is_all {
                return Ok(Evaluated::kept(result));
            }
            left = &left[..left.len() - (count - made_count)];
            made = Some(result);
        }
    }
}

/// Shown to no client: the parser takes it where there are groups only.
pub(super) fn misplaced() -> QueryError {
    QueryError::new(Code::InternalError, "an accumulator of scripts has no window")
}

/// Parses `$accumulator`.
pub(super) fn custom(argument: Value<'_>, parser: &mut Parser) -> Result<Accumulator, QueryError> {
    let Value::Document(argument) = argument else {
        let found = argument.element_type().alias();
        let message = format!("$accumulator expects an object as an argument; found: {found}");
        return Err(failure(4_544_703, message));
    };
    let (mut init, mut accumulate, mut merge, mut finalize) = (None, None, None, None);
    let (mut init_arguments, mut input) = (None, None);
    for (name, value) in argument.iter() {
        match name {
            "init" => init = Some(function(name, value, parser)?),
            "accumulate" => accumulate = Some(function(name, value, parser)?),
            "merge" => merge = Some(function(name, value, parser)?),
            "finalize" => finalize = Some(function(name, value, parser)?),
            "initArgs" => init_arguments = Some(Expression::parse_with(value, parser)?),
            "accumulateArgs" => input = Some(Expression::parse_with(value, parser)?),
            "lang" => check_language(value)?,
            _ => {
                let message = format!("$accumulator got an unexpected field: {name}");
                return Err(failure(4_544_706, message));
            }
        }
    }
    let missing = |code: i32, name: &str| {
        failure(code, format!("$accumulator missing required argument '{name}'"))
    };
    let init = init.ok_or_else(|| missing(4_544_707, "init"))?;
    let accumulate = accumulate.ok_or_else(|| missing(4_544_708, "accumulate"))?;
    merge.ok_or_else(|| missing(4_544_709, "merge"))?;
    let input = input.ok_or_else(|| missing(4_544_710, "accumulateArgs"))?;
    parser.note_other_script();
    let functions =
        Functions::Custom(Arc::new(Custom { init, init_arguments, accumulate, finalize }));
    Ok(Accumulator {
        kind: Kind::Scripted,
        input: Input::Scripted(input, functions),
        parameter: None,
    })
}

fn function(name: &str, value: Value<'_>, parser: &mut Parser) -> Result<Script, QueryError> {
    let expression = Expression::parse_with(value, parser)?;
    match expression.constant() {
        Some(Value::String(source) | Value::JavaScript(source)) => Ok(Script::new(source)),
        Some(_) => {
            let message = format!("$accumulator '{name}' must be a String or Code");
            Err(failure(4_544_702, message))
        }
        None => {
            let message = format!("$accumulator '{name}' must be a constant expression");
            Err(failure(4_544_701, message))
        }
    }
}

fn check_language(value: Value<'_>) -> Result<(), QueryError> {
    match value {
        Value::String("js") => Ok(()),
        Value::String(_) => Err(failure(4_544_705, "$accumulator only supports lang: 'js'")),
        other => {
            let found = other.element_type().alias();
            let message = format!("$accumulator lang must be a string; found: {found}");
            Err(failure(4_544_704, message))
        }
    }
}

/// Parses `$_internalJsReduce`.
pub(super) fn reduce(argument: Value<'_>, parser: &mut Parser) -> Result<Accumulator, QueryError> {
    let Value::Document(argument) = argument else {
        let found = argument.element_type().alias();
        let message = format!("$_internalJsReduce requires a document argument, but found {found}");
        return Err(failure(31326, message));
    };
    let (mut script, mut data) = (None, None);
    for (name, value) in argument.iter() {
        match (name, value) {
            ("eval", Value::String(source) | Value::JavaScript(source)) => {
                script = Some(Script::new(source));
            }
            ("eval", _) => {
                let message = "$_internalJsReduce requires the 'eval' argument to be of type \
                               string, or code";
                return Err(failure(31244, message));
            }
            ("data", _) => data = Some(Expression::parse_with(value, parser)?),
            _ => {
                let message = format!("Invalid argument specified to $_internalJsReduce: {name}");
                return Err(failure(31243, message));
            }
        }
    }
    let missing =
        |code, name: &str| failure(code, format!("$_internalJsReduce requires '{name}' argument"));
    let script = script.ok_or_else(|| missing(31245, "eval"))?;
    let data = data.ok_or_else(|| missing(31349, "data"))?;
    let input = Input::Scripted(data, Functions::Reduce(script));
    Ok(Accumulator { kind: Kind::Scripted, input, parameter: None })
}
