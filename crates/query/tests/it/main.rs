//! The query language against naive models.

mod filters;
mod hostile;
mod indexes;
mod lookups;
mod model;
mod pipelines;
mod spills;
mod stages;
mod updates;
mod windows;
