//! `$function`, and `$_internalJsEmit`, into which a `mapReduce` translates its `map`.

use frond_doc::{Document, Value};

use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::Parser;
use super::scope::Scope;
use crate::error::QueryError;
use crate::script::Script;

/// `$function`
#[derive(Debug)]
struct Call {
    script: Script,
    arguments: Node,
}

impl Operation for Call {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let arguments = self.arguments.evaluate(scope)?;
        let Some(Value::Array(array)) = arguments.value() else {
            return Err(failure(31266, "The args field must be of type array"));
        };
        scope.variables.charged(self.script.call(scope.memory(), None, array.iter())?)
    }
}

/// `$function`
pub(super) fn function(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let argument = object(operator, argument, 31260)?;
    let body = field(argument, "body", (31261, "The body function must be specified."))?;
    let body = parser.expression(body)?;
    let Some(body) = body.constant() else {
        return Err(failure(31432, "The body function must be a constant expression"));
    };
    let (Value::String(source) | Value::JavaScript(source)) = body else {
        return Err(failure(31262, "The body function must evaluate to type string or code"));
    };
    let script = Script::new(source);
    let arguments = field(argument, "args", (31263, "The args field must be specified."))?;
    let arguments = parser.expression(arguments)?;
    let language = field(argument, "lang", (31418, "The lang field must be specified."))?;
    if language != Value::String("js") {
        let message = "Currently the only supported language specifier is 'js'.";
        return Err(failure(31419, message));
    }
    parser.note_script();
    Ok(Node::special(Call { script, arguments }))
}

/// `$_internalJsEmit`
#[derive(Debug)]
struct Emit {
    script: Script,
    this: Node,
}

impl Operation for Emit {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let this = self.this.evaluate(scope)?;
        let Some(Value::Document(this)) = this.value() else {
            return Err(failure(31225, "'this' must be an object."));
        };
        scope.variables.charged(self.script.emits(scope.memory(), this)?)
    }
}

/// `$_internalJsEmit`
pub(super) fn emit(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let argument = object(operator, argument, 31221)?;
    let map = field(argument, "eval", (31222, "The map function must be specified."))?;
    let (Value::String(source) | Value::JavaScript(source)) = map else {
        return Err(failure(31224, "The map function must be of type string or code"));
    };
    let script = Script::new(source);
    let message = format!("{operator} requires 'this' to be specified");
    let this = parser.expression(field(argument, "this", (31223, &message))?)?;
    let script = match argument.get("scope") {
        Some(Value::Document(globals)) => script.with_globals(globals.to_buf()),
        _ => script,
    };
    parser.note_script();
    Ok(Node::special(Emit { script, this }))
}

/// The argument of an operator that takes an object.
fn object<'a>(operator: &str, argument: Value<'a>, code: i32) -> Result<Document<'a>, QueryError> {
    argument.as_document().ok_or_else(|| {
        let found = argument.element_type().alias();
        failure(code, format!("{operator} requires an object as an argument, found: {found}"))
    })
}

/// A field that must be there.
fn field<'a>(
    argument: Document<'a>,
    name: &str,
    (code, message): (i32, &str),
) -> Result<Value<'a>, QueryError> {
    argument.get(name).ok_or_else(|| failure(code, message))
}
