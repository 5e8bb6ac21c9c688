//! Tests of trees against naive models, of what they cost in chunks, and of their stored form.

#![allow(clippy::disallowed_methods)]

mod cached_levels;
mod cost;
mod golden;
mod hostile;
mod load;
mod map_model;
mod sequence_model;
