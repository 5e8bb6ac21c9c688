//! `$count`: how many documents there are, in one document; none if there are none.

use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use super::Documents;
use super::division::{Division, ParallelStage, PartialResult, of_same_stage};
use super::parse::{StageParser, one};
use super::rows::{Input, Rows};
use super::stage::{Context, Counter, Stage, lazily};
use crate::error::QueryError;
use crate::expression::{Variables, failure};
use crate::large::NeededPaths;

/// `$count`, with the field that holds the count.
#[derive(Debug)]
struct Count(String);

impl Stage for Count {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        _: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        Ok(self.over(input.into()))
    }

    fn run_over<'a>(
        self: Arc<Self>,
        rows: Box<dyn Rows + 'a>,
        _: &Context,
    ) -> Result<Input<'a>, QueryError> {
        Ok(Input::Documents(self.over(Input::Rows(rows))))
    }

    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::default()
    }

    fn needs(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn counter(&self) -> Option<&dyn Counter> {
        Some(self)
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Gathers(self)
    }
}

/// The number of documents in a part.
struct Counted {
    stage: Arc<Count>,
    count: i64,
}

impl ParallelStage for Count {
    fn gather(
        self: Arc<Self>,
        input: Input<'_>,
        _: &Context,
    ) -> Result<Box<dyn PartialResult>, QueryError> {
        let count = count(input)?;
        Ok(Box::new(Counted { stage: self, count }))
    }
}

impl PartialResult for Counted {
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError> {
        self.count += of_same_stage::<Counted>(next).count;
        Ok(())
    }

    fn documents(self: Box<Self>, _: &Context) -> Result<Documents<'static>, QueryError> {
        Ok(Box::new(self.stage.document(self.count).into_iter().map(Ok)))
    }
}

impl Counter for Count {
    fn of_count(&self, count: u64, _: &Variables) -> Result<Option<DocumentBuf>, QueryError> {
        Ok(self.document(i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

impl Count {
    fn over<'a>(self: Arc<Self>, input: Input<'a>) -> Documents<'a> {
        lazily(move || Ok(Box::new(self.document(count(input)?).into_iter().map(Ok))))
    }

    fn document(&self, count: i64) -> Option<DocumentBuf> {
        if count == 0 {
            return None;
        }
        let mut builder = DocumentBuilder::new();
        builder.append(&self.0, i32::try_from(count).map_or(Value::Int64(count), Value::Int32));
        Some(builder.build())
    }
}

fn count(input: Input<'_>) -> Result<i64, QueryError> {
    let mut count = 0;
    input.visit(&mut |_| {
        count += 1;
        Ok(true)
    })?;
    Ok(count)
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let field = match argument.as_str() {
        None => return Err(failure(40156, "the count field must be a non-empty string")),
        Some("") => return Err(failure(40157, "the count field must be a non-empty string")),
        Some("_id") => return Err(failure(9_039_800, "the count field cannot be '_id'")),
        Some(field) => field,
    };
    if field.starts_with('$') {
        return Err(failure(40158, "the count field cannot be a $-prefixed path"));
    }
    if field.contains('\0') {
        return Err(failure(40159, "the count field cannot contain a null byte"));
    }
    if field.contains('.') {
        return Err(failure(40160, "the count field cannot contain '.'"));
    }
    one(Count(field.to_owned()))
}
