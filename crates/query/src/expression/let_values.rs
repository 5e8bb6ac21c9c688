//! A command's `let`: variables whose values are constant expressions.

use frond_doc::{Document, Timestamp, ValueBuf};

use super::scope::USER_ROLES;
use super::{Expression, Parser, Variables, check_name, failure};
use crate::error::QueryError;
use crate::memory::RequestMemory;

impl Variables {
    /// The system variables, `now_millis` being `$$NOW`; `let_values` are a command's `let`.
    ///
    /// # Errors
    /// If a name isn't one for variables, or a value is no constant expression.
    pub fn new(now_millis: i64, let_values: Option<Document<'_>>) -> Result<Variables, QueryError> {
        Variables::of_system(now_millis, None, RequestMemory::default()).with_let(let_values)
    }

    /// As [`Variables::new`], in a cluster in which it is `cluster_time`, for a request that may
    /// use `memory`, of a user with these roles, an array.
    ///
    /// # Errors
    /// As [`Variables::new`].
    pub fn in_cluster(
        now_millis: i64,
        cluster_time: Timestamp,
        memory: RequestMemory,
        user_roles: Option<&ValueBuf>,
        let_values: Option<Document<'_>>,
    ) -> Result<Variables, QueryError> {
        let system = Variables::of_system(now_millis, Some(cluster_time), memory);
        let system = match user_roles {
            Some(roles) => system.with(vec![(USER_ROLES.to_owned(), Some(roles.clone()))]),
            None => system,
        };
        system.with_let(let_values)
    }

    fn with_let(self, let_values: Option<Document<'_>>) -> Result<Variables, QueryError> {
        let Some(let_values) = let_values else {
            return Ok(self);
        };
        let mut values = Vec::new();
        for (name, value) in let_values.iter() {
            check_name(name)?;
            let mut parser = Parser::default();
            let expression = Expression::parse_with(value, &mut parser)?;
            if parser.reads_document() {
                let message = "Command let Expression does not evaluate to a constant";
                return Err(failure(4_890_500, format!("{message}: {name}")));
            }
            values.push((name.to_owned(), expression.evaluate(Document::empty(), &self)?));
        }
        Ok(self.with(values))
    }
}
