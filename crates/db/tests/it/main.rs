//! Tests of the embedded database, on a simulated disk.

mod aggregate;
mod catalog;
mod collation;
mod concurrency;
mod crud;
mod durability;
mod equivalence;
mod errors;
mod geo;
mod index_kinds;
mod indexes;
mod large;
mod queries;
mod support;
mod text;
mod transactions;
mod validation;
mod version;
