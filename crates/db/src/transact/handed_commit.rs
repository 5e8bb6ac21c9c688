//! A commit whose request keeps no thread until it is known what becomes of it.

use frond_engine::PendingCommit;

use crate::error::Error;

/// A commit that has its place in the log. Nothing of it may be passed on before
/// [`HandedCommit::hand_on`] says how it ended.
#[must_use = "its request is never answered else"]
pub struct HandedCommit {
    /// Apart, since it is handed from one to the other by value.
    commit: Box<PendingCommit>,
    /// The memory and marks that are kept until its end.
    kept: Option<Box<dyn Send>>,
}

impl HandedCommit {
    pub(crate) fn new(commit: PendingCommit) -> HandedCommit {
        HandedCommit { commit: Box::new(commit), kept: None }
    }

    /// The same, which keeps that until its end.
    pub(crate) fn keeping(self, kept: impl Send + 'static) -> HandedCommit {
        HandedCommit { kept: Some(Box::new(kept)), ..self }
    }

    /// Waits for it.
    ///
    /// # Errors
    /// What a commit would have returned.
    pub fn wait(self) -> Result<(), Error> {
        self.commit.wait(&|| true).map_err(Error::from)
    }

    /// Has `then` called with what a commit would have returned, as
    /// [`PendingCommit::hand_on`] does: it must not wait for a commit, nor for anyone who may wait
    /// for one, and this returns late.
    pub fn hand_on(self, then: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let HandedCommit { commit, kept } = self;
        commit.hand_on(move |done| {
            drop(kept);
            then(done.map_err(Error::from));
        });
    }
}
