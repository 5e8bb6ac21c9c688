//! The query language against naive models.

#![allow(clippy::disallowed_methods)]

mod filters;
mod hostile;
mod indexes;
mod lookups;
mod model;
mod narrow;
mod pipelines;
mod pushdown;
mod spills;
mod stage_cases;
mod stages;
mod updates;
mod window_cases;
mod windows;
