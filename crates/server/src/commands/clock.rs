//! `frondClock`: what the machine's clock says, what of it is believed, and how an operator
//! confirms it.

use frond_doc::{DocumentBuilder, Value};

use crate::request::{Answer, Request};

/// Answers with the clock's readings; with `accept: true` believes it first.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let accept = fields.boolean("accept")?;
    fields.finish()?;
    let frond = &request.server.frond;
    let state = if accept { frond.accept_clock()? } else { frond.clock_state() };
    let mut answer = DocumentBuilder::new();
    append(&mut answer, &state);
    answer.append("message", Value::String(&state.describe()));
    Ok(answer)
}

/// Appends what the clock says, what is believed, and whether the two are at odds.
pub fn append(answer: &mut DocumentBuilder, state: &frond_db::ClockState) {
    answer
        .append("clock", Value::DateTime(state.clock_millis))
        .append("believed", Value::DateTime(state.believed_millis))
        .append("doubted", Value::Boolean(state.is_doubted));
}
