//! Rows whose keys were cut, in the order that was asked for.
//!
//! Keys that share what is left of a key that was cut, a run, lie in the order of hashes
//! ([`key::cut`]). Whatever the sort: entries before and behind a run are in its order, so it is
//! enough to read a run whole and to sort that by its documents.

use std::collections::VecDeque;

use bytes::Bytes;
use frond_doc::key;
use frond_query::{Code, QueryError, SortPattern};
use frond_store::budget::Reservation;

use super::Row;
use crate::error::Error;

/// The common beginning of the keys of a run; `None` for a key that is in no run.
pub(super) type Shared = Option<Bytes>;

/// Returns the part of `entry_key` that it shares with the others of its run.
pub(super) fn shared(entry_key: &Bytes) -> Shared {
    (entry_key.len() > key::CUT_PREFIX_BYTES).then(|| entry_key.slice(..key::CUT_PREFIX_BYTES))
}

/// The rows of runs that were read ahead.
pub(super) struct Runs {
    pub pattern: SortPattern,
    /// For each walk.
    ahead: Vec<Ahead>,
    reservation: Reservation,
}

#[derive(Default)]
struct Ahead {
    /// The rows of a run, in order.
    sorted: VecDeque<Row>,
    /// The row that was read behind it.
    behind: Option<(Row, Shared)>,
}

impl Runs {
    /// Begins with none, of so many walks whose order is that of `pattern`.
    pub fn new(pattern: SortPattern, walks: usize, reservation: Reservation) -> Runs {
        let ahead = std::iter::repeat_with(Ahead::default).take(walks).collect();
        Runs { pattern, ahead, reservation }
    }

    /// The next row of the walk at `place`, whose rows `next` gives; `key_of` makes the key by
    /// which they are sorted.
    ///
    /// # Errors
    /// An error of `next` or `key_of`; 146 if a run is more than there is memory for.
    pub fn next(
        &mut self,
        place: usize,
        next: &mut dyn FnMut() -> Result<Option<(Row, Shared)>, Error>,
        key_of: &dyn Fn(&Row, &SortPattern) -> Result<Bytes, Error>,
    ) -> Result<Option<Row>, Error> {
        let ahead = &mut self.ahead[place];
        if let Some(row) = ahead.sorted.pop_front() {
            return Ok(Some(row));
        }
        let first = match ahead.behind.take() {
            Some(first) => Some(first),
            None => next()?,
        };
        let (first, shared) = match first {
            Some((first, Some(shared))) => (first, shared),
            other => return Ok(other.map(|(row, _)| row)),
        };
        let mut run = vec![first];
        while let Some((row, of)) = next()? {
            if of.as_ref() != Some(&shared) {
                ahead.behind = Some((row, of));
                break;
            }
            run.push(row);
        }
        if run.len() > 1 {
            run = sorted(run, &self.pattern, key_of, &mut self.reservation)?;
        }
        ahead.sorted = run.into();
        Ok(ahead.sorted.pop_front())
    }
}

fn sorted(
    run: Vec<Row>,
    pattern: &SortPattern,
    key_of: &dyn Fn(&Row, &SortPattern) -> Result<Bytes, Error>,
    reservation: &mut Reservation,
) -> Result<Vec<Row>, Error> {
    let mut keyed = Vec::with_capacity(run.len());
    let mut bytes = 0;
    for row in run {
        let key = key_of(&row, pattern)?;
        bytes += key.len() + row.fields().as_bytes().len();
        reservation.hold(bytes).map_err(|exceeded| {
            let message =
                format!("documents whose keys begin alike exceed memory limit of {exceeded}");
            Error::from(QueryError::new(Code::ExceededMemoryLimit, message))
        })?;
        keyed.push((key, row));
    }
    keyed.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(keyed.into_iter().map(|(_, row)| row).collect())
}
