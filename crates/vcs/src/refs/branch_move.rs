//! The acts that move a branch, which its policy judges.

/// The kind of move of a branch.
#[derive(Clone, Copy)]
pub(crate) enum BranchMove {
    /// A commit made on it.
    Commit,
    /// To a commit that was made before.
    FastForward,
    /// To a commit that the branch doesn't have.
    Reset,
}

impl BranchMove {
    /// As it stands in a message.
    pub fn name(self) -> &'static str {
        match self {
            BranchMove::Commit => "the commit",
            BranchMove::FastForward => "the fast-forward",
            BranchMove::Reset => "the reset",
        }
    }
}
