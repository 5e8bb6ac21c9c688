//! `$replaceRoot`, also called `$replaceWith`.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value};

use super::Documents;
use super::division::Division;
use super::parse::{StageParser, one};
use super::stage::{Cardinality, Context, Stage};
use crate::error::QueryError;
use crate::expression::{Expression, Scope, Variables, check_depth, failure};
use crate::known_fields::check_fields;
use crate::large::NeededPaths;

/// `$replaceRoot`
#[derive(Debug)]
struct ReplaceRoot(Expression);

impl Stage for ReplaceRoot {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let variables = context.variables.clone();
        Ok(Box::new(input.map(move |document| self.apply(document?.view(), &variables))))
    }

    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::default()
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Each
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Same
    }
}

impl ReplaceRoot {
    fn apply(
        &self,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<DocumentBuf, QueryError> {
        let scope = Scope::new(document, variables);
        let root = variables.opened(self.0.carry_in(&scope)?, false)?;
        let Some(Value::Document(made)) = root.value() else {
            let whole = variables.large().whole(document)?;
            let document = whole.as_ref().map_or(document, DocumentBuf::view);
            let root = variables.whole(root)?;
            let (text, name) = (root.text(), root.type_name());
            let message = format!(
                "'newRoot' expression  must evaluate to an object, but resulting value was: \
                 {text}. Type of resulting value: '{name}'. Input document: {}",
                crate::text::value(Value::Document(document))
            );
            return Err(failure(40228, message));
        };
        check_depth(Value::Document(made), 1)?;
        Ok(made.to_buf())
    }
}

/// `$replaceRoot`
pub(super) fn replace_root(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        let name = argument.element_type().alias();
        let message =
            format!("expected an object as specification for $replaceRoot stage, got {name}");
        return Err(failure(40229, message));
    };
    check_fields("$replaceRoot", specification, &["newRoot"])?;
    let root = specification.get("newRoot").ok_or_else(|| {
        failure(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
    })?;
    let root = parser.expression(root)?;
    one(ReplaceRoot(root))
}

/// `$replaceWith`
pub(super) fn replace_with(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    one(ReplaceRoot(parser.expression(argument)?))
}
