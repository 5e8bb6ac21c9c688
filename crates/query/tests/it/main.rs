//! The query language against naive models.

mod filters;
mod indexes;
mod model;
mod pipelines;
mod updates;
