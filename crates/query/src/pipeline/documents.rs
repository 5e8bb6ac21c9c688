//! `$documents`: the documents that an expression gives, instead of a collection's.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value};

use super::Documents;
use super::parse::{StageParser, one};
use super::stage::{Context, Stage, lazily};
use crate::error::QueryError;
use crate::expression::{Expression, failure};

/// `$documents`
#[derive(Debug)]
struct Literal(Expression);

impl Stage for Literal {
    fn run<'a>(
        self: Arc<Self>,
        _: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let variables = context.variables.clone();
        Ok(lazily(move || {
            let value = self.0.evaluate(Document::empty(), &variables)?;
            let refuse =
                || failure(5_858_203, "an array of objects is expected as argument of $documents");
            let Some(Value::Array(array)) = value.as_ref().map(|value| value.as_value()) else {
                return Err(refuse());
            };
            let mut documents: Vec<DocumentBuf> = Vec::new();
            for element in array.iter() {
                documents.push(element.as_document().ok_or_else(refuse)?.to_buf());
            }
            Ok(Box::new(documents.into_iter().map(Ok)))
        }))
    }

    fn is_source(&self) -> bool {
        true
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    one(Literal(parser.expression(argument)?))
}
