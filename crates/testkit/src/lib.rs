//! What tests of several crates share: seeded randomness and a simulated disk.

pub mod random;

pub use random::Random;
