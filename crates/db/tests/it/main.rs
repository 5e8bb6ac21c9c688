//! Tests of the embedded database, on a simulated disk.

mod aggregate;
mod catalog;
mod collation;
mod concurrency;
mod counts;
mod crud;
mod durability;
mod equivalence;
mod errors;
mod explained;
mod geo;
mod index_kinds;
mod indexes;
mod large;
mod logged;
mod metadata;
mod queries;
mod support;
mod text;
mod transactions;
mod validation;
mod version;
