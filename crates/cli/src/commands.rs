//! The commands: one file each.

pub mod blame;
pub mod branch;
pub mod cherry_pick;
pub mod commit;
pub mod conflicts;
pub mod diff;
pub mod export;
pub mod fsck;
pub mod gc;
pub mod graph;
pub mod history;
pub mod import;
pub mod log;
pub mod merge;
pub mod rebase;
pub mod reflog;
pub mod reset;
pub mod resolve;
pub mod restore;
pub mod revert;
pub mod serve;
pub mod show;
pub mod status;
pub mod tag;
pub mod tour;
pub mod undo;
