//! The `frond` command.
fn main() {}
