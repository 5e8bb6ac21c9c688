//! The query language against naive models.

mod filters;
mod forward;
mod hostile;
mod indexes;
mod lookups;
mod model;
mod pipelines;
mod spills;
mod stages;
mod updates;
mod windows;
