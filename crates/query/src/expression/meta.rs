//! `$meta`: what the search knows of a document ([`crate::metadata`]).

use frond_doc::Value;

use super::evaluated::Evaluated;
use super::node::{Answer, Node, Operation};
use super::parse::Parser;
use super::scope::Scope;
use crate::error::QueryError;
use crate::metadata::{self, MetadataKind};

/// `$meta`
#[derive(Debug)]
struct Meta(MetadataKind);

impl Operation for Meta {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        Ok(metadata::of(scope.root, self.0).map_or(Evaluated::Missing, Evaluated::Borrowed))
    }
}

/// `$meta`: the caller that parsed the expression learns what it needs, and refuses what it can't
/// give.
pub(super) fn parse(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    let kind = MetadataKind::parse(argument)?;
    parser.note_metadata(kind);
    Ok(Node::special(Meta(kind)))
}
