//! The time for which chunks are expected to be needed.

/// The time for which chunks are expected to be needed: a hint that decides which pack they go to
/// and how hard they are compressed, never what is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lifetime {
    /// Until they are folded into something else: a run.
    Brief,
    /// Until the next fold, or for good: the working state.
    Working,
    /// For good: what a version commit made.
    Lasting,
    /// As `Working`, in leaves that scattered changes rewrite with each fold. Compressed as quickly
    /// as `Brief`.
    Rewritten,
    /// As `Working`, and so much at once that it isn't kept in the cache: what a load made.
    Loaded,
}
