//! Large documents, asked whether they pass before anything of them is put together.

use frond_tree::Value;

use super::fetch::Fetch;
use crate::error::Error;
use crate::large;

impl Fetch<'_> {
    /// Whether a document passes, if it is large and its pieces decide it. One that is kept in
    /// memory whole is asked itself, and one whose outermost fields alone the filter asks for is
    /// read with these.
    pub(super) fn passes_by_pieces(&self, value: &Value) -> Result<Option<bool>, Error> {
        let Some(large) = large::head(value) else { return Ok(None) };
        let can_decide = self.may_fail
            && self.filter.metadata().is_empty()
            && self.filter.near().is_none()
            && self.filter.descends();
        if !can_decide || large::known(&large).is_some() {
            return Ok(None);
        }
        self.reader.read_pieces(|store| {
            self.filter
                .matches_in_pieces(&mut |path, visit| large.visit_reached(store, path, visit))
        })
    }
}
