//! Tests of the embedded database, on a simulated disk.

#![allow(clippy::disallowed_methods)]

mod aggregate;
mod catalog;
mod changes;
mod clock;
mod collated_ids;
mod collation;
mod concurrency;
mod constants;
mod counts;
mod crud;
mod damaged;
mod deferred;
mod divided;
mod durability;
mod equivalence;
mod errors;
mod explained;
mod few_chunks;
mod geo;
mod hot_documents;
mod images;
mod index_builds;
mod index_kinds;
mod indexes;
mod large;
mod lazy;
mod logged;
mod long_keys;
mod many;
mod merged;
mod metadata;
mod net_changes;
mod queries;
mod queued_commits;
mod reached;
mod rules;
mod space;
mod support;
mod text;
mod time_series;
mod transactions;
mod validation;
mod whole;
