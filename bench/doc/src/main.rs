//! Measures documents: how fast a field is found, how much an update of a large document costs.
//!
//! `cargo run --release -p frond-bench-doc -- WORKLOAD`, which is one of `fields`, `filters`,
//! `updates`, `ordered`, `copies`, `pieces`, `sets` and `stream`. Without a word all but the last
//! run, which measures the memory of its process.
//! `flat [10KB|50KB|1MB|15MB|64MB|1GB]...` measures updates of documents of these sizes in turns.
//! Every figure is the median of several runs; tables are printed as they stand in
//! docs/notes/2026-11-22-documents.md.

mod copies;
mod documents;
mod fields;
mod filters;
mod flat;
mod large;
mod measure;
mod updates;

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, sizes)) = wanted.split_first()
        && first == "flat"
    {
        return flat::run(sizes);
    }
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
    if is_wanted("ordered") {
        updates::run_ordered();
    }
    if is_wanted("copies") {
        copies::run();
    }
    if is_wanted("pieces") {
        large::pieces();
    }
    if is_wanted("sets") {
        large::von_neumanns();
    }
    if wanted.iter().any(|it| it == "stream") {
        large::stream();
    }
}
