//! `$sort`: in memory, stable.
//!
//! Where a `$limit` follows, no more than twice the documents that it lets through are kept: when
//! there are as many, they are sorted and the worse half is dropped.

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{DocumentBuf, Value};

use super::parse::{StageParser, one};
use super::stage::{Context, Rows, Stage, lazily};
use super::{Documents, MEMORY_BYTES_MAX};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::failure;
use crate::sort::SortPattern;

/// What a document costs besides its own bytes and its key's.
const ENTRY_BYTES: usize = size_of::<(Bytes, DocumentBuf)>();

/// `$sort`
#[derive(Debug)]
pub(super) struct Sort(pub(super) SortPattern);

impl Stage for Sort {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let wanted = context.wanted;
        Ok(lazily(move || {
            let sorted = sort(input, &self.0, wanted.unwrap_or(usize::MAX))?;
            Ok(Box::new(sorted.into_iter().map(|(_, document)| Ok(document))))
        }))
    }

    fn rows(&self) -> Rows {
        Rows::Other
    }
}

fn sort(
    input: Documents<'_>,
    pattern: &SortPattern,
    wanted: usize,
) -> Result<Vec<(Bytes, DocumentBuf)>, QueryError> {
    let mut entries: Vec<(Bytes, DocumentBuf)> = Vec::new();
    let mut bytes = 0;
    let cost =
        |entry: &(Bytes, DocumentBuf)| ENTRY_BYTES + entry.0.len() + entry.1.as_bytes().len();
    for document in input {
        let document = document?;
        let entry = (pattern.key(document.view()), document);
        bytes += cost(&entry);
        entries.push(entry);
        let is_double = wanted.saturating_mul(2).max(64) <= entries.len();
        if is_double || MEMORY_BYTES_MAX < bytes {
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            entries.truncate(wanted);
            bytes = entries.iter().map(cost).sum();
        }
        if MEMORY_BYTES_MAX < bytes {
            let message = format!(
                "Sort exceeded memory limit of {MEMORY_BYTES_MAX} bytes, but did not opt in to \
                 external sorting."
            );
            let code = Code::QueryExceededMemoryLimitNoDiskUseAllowed;
            return Err(QueryError::new(code, message));
        }
    }
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    entries.truncate(wanted);
    Ok(entries)
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(pattern) = argument else {
        return Err(failure(15973, "the $sort key specification must be an object"));
    };
    if pattern.is_empty() {
        return Err(failure(15976, "$sort stage must have at least one sort key"));
    }
    one(Sort(SortPattern::parse(pattern)?))
}
