//! Measures documents: how fast a field is found, how much an update of a large document costs.
//!
//! `cargo run --release -p frond-bench-doc -- fields|filters|updates`, or all three without a word.
//! Every figure is the median of several runs; tables are printed as they stand in
//! docs/benchmarks-documents.md.

mod documents;
mod fields;
mod filters;
mod measure;
mod updates;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|it| it == name);
    if is_wanted("fields") {
        fields::run();
    }
    if is_wanted("filters") {
        filters::run();
    }
    if is_wanted("updates") {
        updates::run();
    }
}
