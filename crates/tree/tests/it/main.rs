//! Tests of trees against naive models, of what they cost in chunks, and of their stored form.

mod map_model;
