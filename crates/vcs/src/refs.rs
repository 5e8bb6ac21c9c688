//! Names of versions: branches, tags, and the log of what they named before.

pub(crate) mod branch_move;
pub(crate) mod naming;
pub(crate) mod ref_name;
pub(crate) mod reflog;
pub(crate) mod tag;
