//! Sessions' records on their way to another data directory, beside a database that moves there.
//!
//! The result of a session's last write is remembered where the write was done. A client that got
//! no answer sends the write again to where the database is then: so the record has to be there
//! before it. A record replaces one of a lower number, which its client can't send again. Of two
//! records of one write, which the move cut in two, the statements are put together.

use bytes::Bytes;
use frond_engine::{Durability, TreeId};
use frond_query::Code;
use frond_tree::{Bounds, Direction, Value as TreeValue};

use super::Record;
use crate::contention::{LatchMode, Scope};
use crate::error::Error;
use crate::frond::Frond;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::system;
use crate::transact::Outcome;

/// The bytes of a session's id, in its records' keys.
const SESSION_BYTES: usize = 16;

/// A session's record: what names it, and its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CarriedRecord {
    /// The session, and which part of what is remembered.
    pub name: Bytes,
    /// The record.
    pub record: Bytes,
}

impl Frond {
    /// Returns so many records at most, in the order of their names, those after `after`.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn session_records(
        &self,
        after: Option<&[u8]>,
        count_max: usize,
    ) -> Result<Vec<CarriedRecord>, Error> {
        let prefix = system::sessions_prefix();
        let mut bounds = Bounds::prefix(&prefix);
        if let Some(after) = after {
            // The least key behind it.
            bounds.start = Some([&prefix[..], after, &[0]].concat().into());
        }
        let reader = Reader::now(self.engine());
        let place = TreeRef::Live(TreeId::SYSTEM);
        let mut records = Vec::new();
        for entry in reader.range(place, bounds, Direction::Ascending)?.take(count_max) {
            let entry = entry?;
            let name = entry.key.slice(prefix.len()..);
            records.push(CarriedRecord { name, record: reader.read(&entry.value)? });
        }
        Ok(records)
    }

    /// Remembers what another directory's sessions did; returns how many records it didn't have.
    /// They are durable when this returns.
    ///
    /// # Errors
    /// `BadValue` for what is no session's record; what a write may meet.
    pub fn adopt_session_records(&self, records: &[CarriedRecord]) -> Result<usize, Error> {
        let prefix = system::sessions_prefix();
        let mut carried = Vec::with_capacity(records.len());
        for CarriedRecord { name, record } in records {
            let decoded = Record::decode(record.clone());
            let (true, Ok(decoded)) = (SESSION_BYTES <= name.len(), decoded) else {
                return Err(Error::invalid(Code::BadValue, "this is no session's record"));
            };
            carried.push((Bytes::from([&prefix[..], &name[..]].concat()), decoded));
        }
        let scope = Scope::branch("admin", "");
        self.transact(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let mut count = 0;
            for (key, record) in &carried {
                let known = {
                    let reader = Reader::within(self.engine(), transaction);
                    let stored = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), key)?;
                    stored.map(Record::decode).transpose()?
                };
                let record = match known {
                    Some(mut known) if known.number == record.number => {
                        known.add_all(record).then_some(known)
                    }
                    Some(known) if record.number < known.number => None,
                    _ => Some(record.clone()),
                };
                if let Some(record) = record {
                    let value = TreeValue::inline(record.encode());
                    transaction.put(TreeId::SYSTEM, key.clone(), value)?;
                    count += 1;
                }
            }
            Ok(Outcome::commit_if(0 < count, count))
        })
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a write that was done at one directory isn't done again at the other that has its
    //! records. Method: the same write sent to both, before and after they were carried.

    use frond_doc::{DocumentBuf, document};
    use frond_testkit::SimDisk;

    use super::*;
    use crate::frond::FrondOptions;
    use crate::retry::{NumberState, RetryKey, RetryableWrite, StatementIds};

    fn open() -> Frond {
        Frond::open_bare(&SimDisk::new(1).machine(), FrondOptions::default()).expect("opens")
    }

    fn insert(frond: &Frond, session: u8, number: i64, ids: &[i32]) -> Result<Vec<i32>, Error> {
        let key = RetryKey { session: [session; 16], number };
        let write = RetryableWrite { key, statements: StatementIds::From(0) };
        let documents: Vec<DocumentBuf> = ids.iter().map(|id| document! { "_id": *id }).collect();
        let database = frond.database("shop")?.retryable(write);
        let report = database.insert("things", &documents, true, Durability::Synced)?;
        Ok(report.retried)
    }

    #[test]
    fn writes_done_elsewhere_are_not_repeated() {
        let (source, target) = (open(), open());
        for session in 1..=5 {
            insert(&source, session, 3, &[i32::from(session)]).expect("inserted");
        }
        // More statements than a part has.
        let many: Vec<i32> = (100..2_600).collect();
        insert(&source, 9, 1, &many).expect("inserted");
        // This session has gone on at the target.
        insert(&target, 5, 4, &[5_000]).expect("inserted");
        let (mut after, mut count) = (None, 0);
        loop {
            let records = source.session_records(after.as_deref(), 2).expect("read");
            let Some(last) = records.last() else { break };
            after = Some(last.name.clone());
            count += target.adopt_session_records(&records).expect("adopted");
        }
        assert_eq!(count, 4 + 3);
        for session in 1..=4 {
            let retried = insert(&target, session, 3, &[i32::from(session)]).expect("answered");
            assert_eq!(retried, [0], "session {session}");
        }
        let all: Vec<i32> = (0..2_500).collect();
        assert_eq!(insert(&target, 9, 1, &many).expect("answered"), all);
        let error = insert(&target, 5, 3, &[5]).expect_err("too old");
        assert_eq!(error.code, Code::TransactionTooOld);
        let key = RetryKey { session: [5; 16], number: 4 };
        assert_eq!(target.number_state(key).expect("read"), NumberState::Write);
        // A write that was cut in two: each directory has done one of its statements.
        let (key, ids) = (RetryKey { session: [7; 16], number: 8 }, [71, 72]);
        for (frond, position) in [(&source, 0), (&target, 1)] {
            let write = RetryableWrite { key, statements: StatementIds::Listed(vec![position]) };
            let database = frond.database("shop").expect("opens").retryable(write);
            let document = document! { "_id": ids[position as usize] };
            database.insert("things", &[document], true, Durability::Synced).expect("inserted");
        }
        let all = source.session_records(None, 100).expect("read");
        assert_eq!(target.adopt_session_records(&all).expect("adopted"), 1);
        assert_eq!(insert(&target, 7, 8, &ids).expect("answered"), [0, 1]);
        // Nothing is left to be carried, and what is none isn't taken.
        let all = source.session_records(None, 100).expect("read");
        assert_eq!(target.adopt_session_records(&all).expect("adopted"), 0);
        let wrong = CarriedRecord { name: Bytes::from_static(b"short"), ..all[0].clone() };
        assert!(target.adopt_session_records(&[wrong]).is_err());
    }
}
