//! Interrupts a running query.

use std::fmt;
use std::sync::Arc;

use frond_engine::KeepGoing;

use crate::error::Error;

/// Asks whether to go on.
type Check = dyn Fn() -> Result<(), Error> + Send + Sync;

/// Interrupts a query: asked between the documents that are read, also while a sort or group reads
/// all of them. The default never does.
#[derive(Clone, Default)]
pub struct Interrupt(Option<Arc<Check>>);

impl Interrupt {
    /// An interrupt that `check` decides.
    pub fn new(check: impl Fn() -> Result<(), Error> + Send + Sync + 'static) -> Interrupt {
        Interrupt(Some(Arc::new(check)))
    }

    /// Asks the same; `None` if it never says no.
    #[doc(hidden)]
    pub fn keep_going(&self) -> Option<Arc<KeepGoing>> {
        let check = self.0.clone()?;
        Some(Arc::new(move || check().is_ok()))
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// The error of the query.
    pub fn check(&self) -> Result<(), Error> {
        self.0.as_ref().map_or(Ok(()), |check| check())
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupt").field(&self.0.is_some()).finish()
    }
}
