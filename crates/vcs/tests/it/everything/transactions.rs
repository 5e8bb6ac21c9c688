//! Transactions of several statements, open beside each other.
//!
//! The documents that such a transaction has read must be those of one single state, of all since
//! it began (its snapshot may move, if nothing that it has read has changed). The documents that it
//! has written replace just those that were there when it commits: had another changed them
//! meanwhile, it must fail.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use frond_db::{Durability, Error, ErrorKind, Frond, Transaction};
use frond_doc::{DocumentBuf, Value, document};
use frond_query::Code;

use super::edits::Edit;
use super::state::{Key, Model, Tried};
use super::{IDS, World};
use crate::model::check_indexes;
use crate::model::naive::{Fields, to_document};
use crate::try_find;

const OPEN_MAX: usize = 4;

pub struct OpenTransaction {
    transaction: Transaction,
    /// The state in the log that was now when it began.
    began: usize,
    /// The states since then that it can be at, of those before `looked_at`.
    possible: Vec<usize>,
    looked_at: usize,
    reads: BTreeMap<Key, Option<DocumentBuf>>,
    pub own: BTreeMap<Key, Option<Fields>>,
}

fn is_like(model: &Model, key: &Key, read: Option<&DocumentBuf>) -> bool {
    let document = model.document(key).map(|fields| to_document(key.2, fields));
    document.as_ref() == read
}

/// Ends transactions by which another step is held up: there is one thread for all.
pub struct Patience {
    is_over: mpsc::Sender<()>,
    thread: JoinHandle<bool>,
}

/// The interval of checks whether one waits.
const LOOK_EVERY: Duration = Duration::from_millis(1);

impl Patience {
    pub fn begin(frond: &Frond, open: &[OpenTransaction]) -> Patience {
        let written = open.iter().filter(|open| !open.own.is_empty());
        let open: Vec<Transaction> = written.map(|open| open.transaction.clone()).collect();
        let (is_over, waits) = mpsc::channel();
        let frond = frond.clone();
        let thread = thread::spawn(move || {
            if open.is_empty() {
                return false;
            }
            while waits.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                if 0 < frond.engine().counters().waiting {
                    open.iter().for_each(Transaction::abort);
                    return true;
                }
            }
            false
        });
        Patience { is_over, thread }
    }

    /// Whether it came to an end.
    pub fn end(self) -> bool {
        drop(self.is_over);
        self.thread.join().expect("nothing panics there")
    }
}

impl OpenTransaction {
    pub fn has_written(&self, branch: &str, collection: &str) -> bool {
        self.own.keys().any(|(of, name, _)| of == branch && *name == collection)
    }

    fn note_read(&mut self, log: &[Model], key: Key, read: Option<DocumentBuf>) {
        if self.own.contains_key(&key) {
            return;
        }
        if let Some(before) = self.reads.get(&key) {
            assert_eq!(before, &read, "a transaction reads the same again: {key:?}");
            return;
        }
        self.possible.retain(|state| is_like(&log[*state], &key, read.as_ref()));
        self.reads.insert(key, read);
    }

    /// Checks that all that it has read is of one state.
    fn check(&mut self, log: &[Model]) {
        for (state, model) in log.iter().enumerate().skip(self.looked_at) {
            let mut reads = self.reads.iter();
            if reads.all(|(key, read)| is_like(model, key, read.as_ref())) {
                self.possible.push(state);
            }
        }
        self.looked_at = log.len();
        assert!(!self.possible.is_empty(), "a transaction has read what never was at one time");
    }
}

impl World {
    /// Does something in a transaction, or with one.
    pub fn transact(&mut self) -> Result<(), Error> {
        let count = self.transactions.len();
        match self.random.below(12) {
            0 | 1 if count < OPEN_MAX => {
                let began = self.log.len() - 1;
                self.transactions.push(OpenTransaction {
                    transaction: self.frond.begin(),
                    began,
                    possible: Vec::new(),
                    looked_at: began,
                    reads: BTreeMap::new(),
                    own: BTreeMap::new(),
                });
                Ok(())
            }
            _ if count == 0 => Ok(()),
            0 => {
                let position = self.random.below(count);
                self.transactions.swap_remove(position).transaction.abort();
                Ok(())
            }
            1 | 2 => self.commit_transaction(),
            3 | 4 => self.read_within(),
            5 => self.insert_twice(),
            _ => self.write_within(),
        }
    }

    /// A transaction, and a collection that was there all the time since it began.
    fn choose_within(&mut self) -> Option<(usize, String, &'static str)> {
        let position = self.random.below(self.transactions.len());
        let branch = self.any_branch();
        let names: Vec<&'static str> = self.now().0[&branch].working.keys().copied().collect();
        let name = *names.get(self.random.below(names.len().max(1)))?;
        let mut since = self.log[self.transactions[position].began..].iter();
        since.all(|model| model.has_collection(&branch, name)).then_some((position, branch, name))
    }

    fn write_within(&mut self) -> Result<(), Error> {
        let Some((position, branch, name)) = self.choose_within() else { return Ok(()) };
        let id = self.any_id();
        let now = self.log.last().expect("see now");
        let open = &mut self.transactions[position];
        let mut since = self.log[open.began..].iter();
        let is_same = since.all(|model| model.0[&branch].replaced == now.0[&branch].replaced);
        let inside = match open.transaction.database(&branch) {
            Ok(inside) => inside,
            Err(error) => return self.lose(position, error),
        };
        let key: Key = (branch, name, id);
        // The replaced document is the present one: else the write would be refused. But a write
        // into trees that are gone is only refused by the commit.
        let mut state = self.log.len() - 1;
        if !is_same {
            let found = try_find(&inside, name, Some(document! { "_id": id }), None)?;
            open.note_read(&self.log, key.clone(), found.into_iter().next());
            open.check(&self.log);
            state = *open.possible.last().expect("it was checked");
        }
        let there = self.log[state].document(&key);
        let before = open.own.get(&key).cloned().unwrap_or_else(|| there.cloned());
        let edit = Edit::random(id, before.as_ref(), &mut self.random);
        match edit.run(&inside, name, id, Durability::Relaxed) {
            Ok(true) => {
                let read = there.map(|fields| to_document(id, fields));
                open.note_read(&self.log, key.clone(), read);
                open.own.insert(key, edit.apply(before.as_ref()));
            }
            // Either there is nothing to change, or what is there is so already.
            Ok(false) if !matches!(edit, Edit::Remove) => {}
            Ok(false) => open.note_read(&self.log, key, None),
            Err(error) if error.kind == ErrorKind::Invalid => {
                // The change was made for what another has put there since.
                let there = there.map(|fields| to_document(id, fields));
                let mut since = self.log[open.began..].iter();
                let is_stale = since.any(|model| !is_like(model, &key, there.as_ref()));
                assert!(is_stale && open.reads.get(&key) != Some(&there), "{error}");
                self.transactions.swap_remove(position).transaction.abort();
                return Ok(());
            }
            Err(error) => return self.lose(position, error),
        }
        self.transactions[position].check(&self.log);
        Ok(())
    }

    /// Inserts a document that is there beside one that isn't: the first is refused, the other
    /// stays.
    fn insert_twice(&mut self) -> Result<(), Error> {
        let Some((position, branch, name)) = self.choose_within() else { return Ok(()) };
        let open = &self.transactions[position];
        let keys = (0..IDS as i32).map(|id| (branch.clone(), name, id));
        let (mut there, mut missing) = (None, None);
        for key in keys {
            match open.own.get(&key) {
                Some(Some(_)) => there = Some(key),
                Some(None) => missing = Some(key),
                None => {}
            }
        }
        let (Some(there), Some(missing)) = (there, missing) else { return Ok(()) };
        let fields = Fields::new();
        let documents = [to_document(there.2, &fields), to_document(missing.2, &fields)];
        let inserted = open
            .transaction
            .database(&branch)
            .and_then(|inside| inside.insert(name, &documents, false, Durability::Relaxed));
        let report = match inserted {
            Ok(report) => report,
            Err(error) => return self.lose(position, error),
        };
        for error in report.errors {
            if error.error.code != Code::DuplicateKey {
                return self.lose(position, error.error);
            }
            assert_eq!(error.position, 0);
        }
        assert_eq!(report.count, 1);
        self.transactions[position].own.insert(missing, Some(fields));
        Ok(())
    }

    fn read_within(&mut self) -> Result<(), Error> {
        let Some((position, branch, name)) = self.choose_within() else { return Ok(()) };
        let open = &mut self.transactions[position];
        let inside = open.transaction.database(&branch)?;
        let found = try_find(&inside, name, None, None)?;
        check_indexes(&inside, name)?;
        let mut found: BTreeMap<i32, DocumentBuf> =
            found.into_iter().map(|document| (id_of(&document), document)).collect();
        for id in 0..IDS as i32 {
            let key = (branch.clone(), name, id);
            let read = found.remove(&id);
            if let Some(own) = open.own.get(&key) {
                let own = own.as_ref().map(|fields| to_document(id, fields));
                assert_eq!(read, own, "a transaction reads what it wrote");
            }
            open.note_read(&self.log, key, read);
        }
        open.check(&self.log);
        Ok(())
    }

    fn commit_transaction(&mut self) -> Result<(), Error> {
        let position = self.random.below(self.transactions.len());
        let durability = self.durability();
        let mut after = self.now().clone();
        let open = &mut self.transactions[position];
        open.check(&self.log);
        let mut is_lost = false;
        for (key, own) in &open.own {
            // A document that it has written must still be as it has read it, or the commit is
            // refused.
            is_lost |= !after.has_collection(&key.0, key.1);
            if !is_lost {
                is_lost = open.reads.get(key).is_some_and(|read| {
                    !is_like(self.log.last().expect("see now"), key, read.as_ref())
                });
                after.put(key, own.clone());
            }
        }
        let has_written = !open.own.is_empty();
        self.tried = vec![Tried { model: after.clone(), commit: None }];
        match open.transaction.commit(durability, None) {
            Ok(()) => {
                assert!(!is_lost, "a conflict was missed");
                self.transactions.swap_remove(position);
                self.seen.committed += u32::from(has_written);
                self.settle(after, if has_written { durability } else { Durability::Relaxed });
                Ok(())
            }
            Err(error) => self.lose(position, error),
        }
    }

    /// Gives up a transaction after an error. A conflict needs another writer.
    fn lose(&mut self, position: usize, error: Error) -> Result<(), Error> {
        let open = self.transactions.swap_remove(position);
        open.transaction.abort();
        if error.kind != ErrorKind::Conflict {
            return Err(error);
        }
        let others = !self.transactions.is_empty() || open.began + 1 < self.log.len();
        assert!(others || self.collector.is_some(), "a needless conflict");
        self.tried.clear();
        self.seen.conflicts += 1;
        Ok(())
    }
}

fn id_of(document: &DocumentBuf) -> i32 {
    match document.get("_id") {
        Some(Value::Int32(id)) => id,
        other => panic!("ids are numbers, not {other:?}"),
    }
}
