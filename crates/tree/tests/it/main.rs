//! Tests of trees against naive models, of what they cost in chunks, and of their stored form.

mod cost;
mod golden;
mod hostile;
mod load;
mod map_model;
mod sequence_model;
mod trunk;
