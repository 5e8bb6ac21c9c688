//! `getParameter`, `getCmdLineOpts` and `profile`.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::request::{Answer, Request};

/// Appends a parameter's value.
type AppendParameter = fn(&mut DocumentBuilder);

/// The parameters that clients ask for, sorted.
const PARAMETERS: &[(&str, AppendParameter)] = &[
    ("authenticationMechanisms", |answer| {
        answer.begin_array("authenticationMechanisms").end();
    }),
    ("featureCompatibilityVersion", |answer| {
        answer
            .begin_document("featureCompatibilityVersion")
            .append("version", Value::String("8.0"))
            .end();
    }),
    ("quiet", |answer| {
        answer.append("quiet", Value::Boolean(false));
    }),
];

/// Tells parameters by name, or all: `getParameter: "*"` or `{allParameters: true}`.
pub fn get(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let tells_all = match request.argument() {
        Value::String("*") => true,
        Value::Document(options) => {
            options.get("allParameters").is_some_and(|value| value.is_truthy())
        }
        _ => false,
    };
    let mut answer = DocumentBuilder::new();
    let mut count = 0;
    for (name, append) in PARAMETERS {
        let is_named = fields.value_or_null(name).is_some();
        if tells_all || is_named {
            append(&mut answer);
            count += 1;
        }
    }
    // Names that nobody knows are passed over if another one is known, as MongoDB does it.
    if count == 0 {
        let message = "no option found to get";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    Ok(answer)
}

/// Tells the command line.
pub fn get_cmd_line_opts(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let server = request.server;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("argv");
    for argument in &server.arguments {
        answer.push(Value::String(argument));
    }
    answer.end();
    answer
        .begin_document("parsed")
        .begin_document("net")
        .append("bindIp", Value::String(&server.address.ip().to_string()))
        .append("port", Value::Int32(i32::from(server.address.port())))
        .end()
        .begin_document("storage")
        .append("dbPath", Value::String(&server.data_directory))
        .end()
        .end();
    Ok(answer)
}

/// Tells that nothing is profiled, and refuses to begin.
pub fn profile(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let level = request.argument().as_integer();
    if level.is_none() {
        let expected = "types '[long, int, decimal, double]'";
        return Err(fields.wrong_type("profile", request.argument(), expected));
    }
    if !matches!(level, Some(0 | -1)) {
        let message = "profiling is not supported by Frond";
        return Err(Error::invalid(Code::CommandNotSupported, message));
    }
    fields.refuse("filter")?;
    fields.ignore(&["slowms", "sampleRate"]);
    fields.finish()?;
    let mut answer = DocumentBuilder::new();
    answer
        .append("was", Value::Int32(0))
        .append("slowms", Value::Int32(100))
        .append("sampleRate", Value::Double(1.0));
    Ok(answer)
}
