//! tour placeholder
use crate::failure::Failure; use crate::terminal::Terminal;
/// x
#[derive(clap::Args)]
pub struct Tour {}
impl Tour { pub fn run(&self, _terminal: &mut Terminal) -> Result<(), Failure> { Ok(()) } }
