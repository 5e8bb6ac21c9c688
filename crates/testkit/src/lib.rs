//! Tools that the tests of several crates share: seeded randomness and a simulated machine.

pub mod bucket;
pub mod disk;
pub mod gate;
pub mod machine;
pub mod net;
pub mod random;

pub use bucket::{DepotFaults, SimDepot};
pub use disk::SimDisk;
pub use gate::{Gate, Keeper};
pub use machine::{SimChance, SimClock};
pub use net::SimNet;
pub use random::Random;
