//! The cursors that end although what they read has its name and its UUID still: those of a
//! collection that `$out` has replaced, and of a branch that was deleted or renamed (and may have
//! been made again).
//!
//! 1. An act that ends cursors takes a number before its transaction ([`Frond::begin_to_end`]) and
//!    notes it once that is visible ([`Frond::end_cursors`]). So no cursor ends that began when it
//!    was; of those that began meanwhile none ends, whichever state they read.
//! 2. A cursor that began before the number ends at its next document.
//!
//! In memory only: no cursor outlives the process. What is noted is bounded: beyond
//! [`PLACES_MAX`] places all older cursors end.
//!
//! [`Frond::begin_to_end`]: crate::frond::Frond::begin_to_end
//! [`Frond::end_cursors`]: crate::frond::Frond::end_cursors

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// Places for which an end is kept. Ten thousand cursors may be open.
const PLACES_MAX: usize = 10_000;

/// A branch of a database, and a collection of it unless all are meant.
type Subject = (String, String, Option<String>);

/// The numbers before which cursors have ended.
///
/// *Thread safety*: any number of threads.
#[derive(Default)]
pub(crate) struct EndedCursors(RwLock<Ended>);

#[derive(Default)]
struct Ended {
    places: HashMap<Subject, u64>,
    /// Before it all have.
    all: u64,
}

impl EndedCursors {
    /// Ends those at a place that began before `number`.
    pub fn end(&self, repository: &str, branch: &str, collection: Option<&str>, number: u64) {
        let mut ended = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Ended { places, all } = &mut *ended;
        let place = (repository.to_owned(), branch.to_owned(), collection.map(str::to_owned));
        if PLACES_MAX <= places.len() && !places.contains_key(&place) {
            *all = places.drain().map(|(_, number)| number).fold(*all, u64::max);
        }
        let known = places.entry(place).or_insert(number);
        *known = number.max(*known);
    }

    /// Whether one has ended that began when the number was `begun`.
    pub fn has_ended(&self, repository: &str, branch: &str, collection: &str, begun: u64) -> bool {
        let ended = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let at = |collection: Option<&str>| {
            let place = (repository.to_owned(), branch.to_owned(), collection.map(str::to_owned));
            ended.places.get(&place).is_some_and(|number| begun < *number)
        };
        begun < ended.all || at(None) || at(Some(collection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_began_before_have_ended() {
        let ended = EndedCursors::default();
        ended.end("shop", "main", Some("c"), 5);
        ended.end("shop", "main", Some("c"), 3);
        ended.end("shop", "old", None, 7);
        let has = |place: [&str; 3], begun: u64| {
            let [repository, branch, collection] = place;
            ended.has_ended(repository, branch, collection, begun)
        };
        assert!(has(["shop", "main", "c"], 4) && !has(["shop", "main", "c"], 5));
        assert!(!has(["shop", "main", "d"], 0) && !has(["shop", "sale", "c"], 0));
        assert!(has(["shop", "old", "any"], 6) && !has(["shop", "old", "any"], 7));
        assert!(!has(["other", "old", "any"], 6));
        for number in 0..=PLACES_MAX as u64 {
            ended.end("many", "main", Some(&number.to_string()), 100 + number);
        }
        let ended_places = ended.0.read().expect("whole").places.len();
        assert!(ended_places <= PLACES_MAX);
        assert!(has(["other", "old", "any"], 6), "what isn't known any more has ended");
        assert!(!has(["other", "old", "any"], 100 + PLACES_MAX as u64));
    }
}
