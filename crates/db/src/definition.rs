//! The definitions of collections and indexes: their options, checked and in the form that is
//! stored.
//!
//! Reading order: [`IndexSpec`] (an index's definition, with `text`), then a collection's options:
//! `clustered`, `capped`, `validation`, `view`, `merge_rules`. Knows documents only: no tree, no
//! reader, no database.

pub(crate) mod capped;
pub(crate) mod clustered;
pub(crate) mod images;
mod index;
pub(crate) mod merge_rules;
mod text;
pub(crate) mod validation;
pub(crate) mod view;

use frond_doc::{DocumentBuf, Value};

use capped::is_capped;

pub use index::{ID_INDEX_NAME, IndexSpec, UnknownOptions, expire_after};
pub use text::TextOptions;

/// The option that leaves a collection out of commits.
pub(crate) const VERSIONED: &str = "versioned";

/// Whether commits have a collection with these options.
pub fn is_versioned(options: &DocumentBuf) -> bool {
    options.get(VERSIONED) != Some(Value::Boolean(false)) && !is_capped(options.view())
}
