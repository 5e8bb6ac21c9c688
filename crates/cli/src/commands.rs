//! The commands: one file each.

pub mod branch;
pub mod commit;
pub mod conflicts;
pub mod diff;
pub mod export;
pub mod fsck;
pub mod gc;
pub mod import;
pub mod log;
pub mod merge;
pub mod reset;
pub mod resolve;
pub mod serve;
pub mod status;
pub mod tour;
