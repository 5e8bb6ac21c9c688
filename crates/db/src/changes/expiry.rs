//! The time for which streams show what documents were before they changed: MongoDB's cluster
//! parameter `changeStreamOptions`, a setting of the data directory.
//!
//! The former documents lie in the log, and go with it. This only says that it isn't shown any
//! more.

use frond_engine::Sequence;

use crate::access::AccessKind;
use crate::error::Error;
use crate::frond::Frond;

/// The name of the setting, whose document has MongoDB's fields.
pub const CHANGE_STREAM_OPTIONS: &str = "changeStreamOptions";

impl Frond {
    /// The number of seconds after a change for which streams show what the document was; `None`:
    /// for as long as the log is kept.
    ///
    /// # Errors
    /// An error of reading.
    pub fn image_seconds_max(&self) -> Result<Option<i64>, Error> {
        let stored = self.access_document(AccessKind::Setting, "", CHANGE_STREAM_OPTIONS)?;
        let images = stored.as_ref().and_then(|stored| stored.get("preAndPostImages"));
        let images = images.and_then(|images| images.as_document());
        let seconds = images.and_then(|images| images.get("expireAfterSeconds"));
        Ok(seconds.and_then(|seconds| seconds.as_integer()))
    }

    /// Whether what a document was before a change isn't shown any more.
    ///
    /// # Errors
    /// An error of reading.
    pub(super) fn has_expired_image(&self, change: Sequence) -> Result<bool, Error> {
        let Some(seconds) = self.image_seconds_max()? else { return Ok(false) };
        let Some(now_millis) = self.expiry_millis() else { return Ok(false) };
        let changed = i64::try_from(change.seconds()).unwrap_or(i64::MAX);
        Ok(changed.saturating_add(seconds) <= now_millis.div_euclid(1000))
    }
}
