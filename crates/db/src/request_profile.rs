//! The profile of a thread's request: the plan by which it finds documents, the numbers of keys and
//! documents it examines, and the results of each statement of a write. The profiler and the log
//! show it.
//!
//! 1. A server says when a request begins and ends ([`begin`], [`end`]); on threads that serve none
//!    nothing is noted.
//! 2. The first search of a request is the one whose plan is shown: a `$lookup`'s come later.
//! 3. A plan is kept as the names of its scans and the keys of its indexes, whose text is made when
//!    it is shown ([`Plan::summary`]). A search by `_id` keeps nothing in memory.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use frond_doc::{Document, DocumentBuf, Value};
use frond_query::examined::{self, Examined};
use frond_store::io::steady_now;

use crate::error::Error;

/// The plan by which documents are found.
#[derive(Clone, Default, Debug)]
pub enum Plan {
    /// They aren't looked for.
    #[default]
    Unknown,
    /// There is no collection.
    Nothing,
    /// By an `_id`, through the planner.
    ById,
    /// By an `_id`, beside the planner.
    ExpressById,
    /// By several `_id`s, as a scan of their index is shown.
    ByIds,
    /// By scans.
    Scans(Vec<ScanSummary>),
}

/// A scan of a plan.
#[derive(Clone, Debug)]
pub struct ScanSummary {
    /// The stage's name in MongoDB.
    pub stage: &'static str,
    /// The index's key, if there is an index.
    pub key: Option<DocumentBuf>,
}

/// The profile of a request.
#[derive(Default, Debug)]
pub struct RequestProfile {
    /// The plan by which it found documents.
    pub plan: Plan,
    /// The counts of what it examined.
    pub examined: Examined,
    /// Those statements of a write that took as long as was asked for.
    pub statements: Vec<StatementProfile>,
}

/// The profile of a statement of a write.
#[derive(Debug)]
pub struct StatementProfile {
    /// Counted from 0.
    pub position: usize,
    /// The time that it took, without what the statements of its transaction waited for together.
    pub time: Duration,
    /// The plan by which it found documents.
    pub plan: Plan,
    /// The counts of what it examined.
    pub examined: Examined,
    /// The outcome.
    pub outcome: Done,
}

/// The counts of a statement of a write.
#[derive(Clone, Copy, Default, Debug)]
pub struct StatementOutcome {
    /// Documents that were inserted, matched or deleted; one that was upserted isn't counted.
    pub count: u64,
    /// Documents that were changed.
    pub modified: u64,
    /// Whether a document was upserted.
    pub has_upserted: bool,
}

/// The profile of a request, for other threads to read while it runs.
#[derive(Default, Debug)]
pub struct Live {
    plan: Mutex<Plan>,
    examined: Arc<examined::Live>,
}

impl Live {
    /// Returns how the request finds documents, as far as is known.
    pub fn plan(&self) -> Plan {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many keys and documents it has examined, about.
    pub fn counts(&self) -> (u64, u64) {
        self.examined.counts()
    }

    fn note(&self, plan: &Plan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan.clone();
    }
}

struct Notes {
    plan: Plan,
    live: Arc<Live>,
    /// The number to add to the positions of statements.
    first: usize,
    statements: Vec<StatementProfile>,
    /// Statements that take as long are noted.
    statements_from: Option<Duration>,
}

thread_local! {
    static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

/// A request begins on this thread. Of a write the statements are noted that take `statements_from`
/// or longer. Its profile is also kept in `live`.
pub fn begin(statements_from: Option<Duration>, live: &Arc<Live>) {
    examined::take();
    examined::report_to(Some(Arc::clone(&live.examined)));
    let (plan, live, statements) = (Plan::Unknown, Arc::clone(live), Vec::new());
    NOTES.set(Some(Notes { plan, live, first: 0, statements, statements_from }));
}

/// The statements that the request runs next are some of its own, the first of which has this
/// position.
pub fn begin_group(first: usize) {
    NOTES.with_borrow_mut(|notes| notes.iter_mut().for_each(|notes| notes.first = first));
}

/// The request of this thread has ended.
pub fn end() -> RequestProfile {
    let examined = examined::take();
    examined::report_to(None);
    match NOTES.take() {
        Some(Notes { plan, statements, .. }) => RequestProfile { plan, examined, statements },
        None => RequestProfile { examined, ..RequestProfile::default() },
    }
}

/// Returns how the request of this thread finds documents, as far as is known.
pub fn plan() -> Plan {
    NOTES.with_borrow(|notes| notes.as_ref().map(|notes| notes.plan.clone()).unwrap_or_default())
}

/// Notes how the request finds documents, unless that is known; answers whether it was noted.
pub fn note(plan: impl FnOnce() -> Plan) -> bool {
    NOTES.with_borrow_mut(|notes| match notes {
        Some(notes) if matches!(notes.plan, Plan::Unknown) => {
            notes.plan = plan();
            notes.live.note(&notes.plan);
            true
        }
        _ => false,
    })
}

/// Notes that the plan that was noted is run beside the planner.
pub(crate) fn note_express() {
    change(|plan| match plan {
        Plan::ById => *plan = Plan::ExpressById,
        Plan::Scans(scans) => scans.iter_mut().for_each(|scan| scan.stage = EXPRESS),
        _ => {}
    });
}

/// Notes that the scans of indexes that were noted do `stage`, and those of collections
/// `of_collection`.
pub(crate) fn note_stage(stage: &'static str, of_collection: &'static str) {
    change(|plan| {
        if let Plan::ById = plan {
            *plan = Plan::Scans(vec![ScanSummary { stage, key: Some(id_key()) }]);
        } else if let Plan::Scans(scans) = plan {
            for scan in scans {
                scan.stage = if scan.key.is_some() { stage } else { of_collection };
            }
        }
    });
}

fn change(change: impl Fn(&mut Plan)) {
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            change(&mut notes.plan);
            notes.live.note(&notes.plan);
        }
    });
}

/// A statement that runs; `None` where it isn't noted.
pub(crate) struct Statement {
    begun: Instant,
    before: Examined,
}

/// The outcome of a statement: its counts, or the error.
type Done = Result<StatementOutcome, Error>;

impl Statement {
    /// Begins a statement, if statements are noted.
    pub fn begin() -> Option<Statement> {
        let is_noted = NOTES.with_borrow_mut(|notes| {
            let notes = notes.as_mut().filter(|notes| notes.statements_from.is_some())?;
            notes.plan = Plan::Unknown;
            Some(())
        });
        is_noted.map(|()| Statement { begun: steady_now(), before: examined::take() })
    }

    /// Forgets what it examined: it is run again, in another way.
    pub fn abandon(self) {
        examined::take();
    }

    /// Notes what it did, if that took long enough; `outcome` returns what it came to.
    pub fn end(self, position: usize, outcome: impl FnOnce() -> Done) {
        let (time, examined) = (self.begun.elapsed(), examined::take());
        examined::add(examined);
        NOTES.with_borrow_mut(|notes| {
            let Some(notes) = notes else { return };
            let position = notes.first + position;
            if notes.statements_from.is_some_and(|from| from <= time) {
                let (plan, outcome) = (notes.plan.clone(), outcome());
                // Its transaction may run more than once.
                notes.statements.retain(|noted| noted.position < position);
                notes.statements.push(StatementProfile { position, time, plan, examined, outcome });
            }
        });
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        examined::add(self.before);
    }
}

const EXPRESS: &str = "EXPRESS_IXSCAN";

impl Plan {
    /// The plan in MongoDB's words (`planSummary`), if there is one.
    pub fn summary(&self) -> Option<String> {
        let scans = match self {
            Plan::Unknown => return None,
            Plan::Nothing => return Some("EOF".to_owned()),
            Plan::ById => return Some("IDHACK".to_owned()),
            Plan::ExpressById => return Some(format!("{EXPRESS} {}", key_text(id_key().view()))),
            Plan::ByIds => return Some(format!("IXSCAN {}", key_text(id_key().view()))),
            Plan::Scans(scans) => scans,
        };
        let mut summary = String::new();
        for scan in scans {
            if !summary.is_empty() {
                summary.push_str(", ");
            }
            summary.push_str(scan.stage);
            if let Some(key) = &scan.key {
                let _ = write!(summary, " {}", key_text(key.view()));
            }
        }
        Some(summary)
    }

    /// Whether the planner has a choice in MongoDB: then its query has a shape.
    pub fn is_planned(&self) -> bool {
        match self {
            Plan::ByIds => true,
            Plan::Scans(scans) => scans.iter().all(|scan| scan.stage != EXPRESS),
            Plan::Unknown | Plan::Nothing | Plan::ById | Plan::ExpressById => false,
        }
    }
}

fn id_key() -> DocumentBuf {
    frond_doc::document! { "_id": 1 }
}

/// A key's pattern as MongoDB writes it: `{ a: 1, b: -1 }`.
pub(crate) fn key_text(pattern: Document<'_>) -> String {
    let text_of = |value: Value<'_>| match value {
        Value::String(kind) => format!("\"{kind}\""),
        Value::Double(number) => format!("{number:?}"),
        other => other.as_integer().map_or_else(|| "1".to_owned(), |number| number.to_string()),
    };
    let fields: Vec<String> =
        pattern.iter().map(|(name, value)| format!("{name}: {}", text_of(value))).collect();
    format!("{{ {} }}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    fn scan(stage: &'static str, key: Option<DocumentBuf>) -> ScanSummary {
        ScanSummary { stage, key }
    }

    #[test]
    fn the_first_plan_of_a_request_is_noted_and_outside_of_requests_none() {
        assert!(!note(|| Plan::Nothing));
        assert_eq!(end().plan.summary(), None);
        begin(None, &Arc::default());
        assert!(note(|| Plan::ById));
        assert!(!note(|| Plan::Nothing));
        assert_eq!(plan().summary().as_deref(), Some("IDHACK"));
        note_express();
        assert_eq!(end().plan.summary().as_deref(), Some("EXPRESS_IXSCAN { _id: 1 }"));
        assert_eq!(end().plan.summary(), None);
    }

    #[test]
    fn a_plan_is_shown_in_the_words_of_mongodb() {
        let key = document! { "a": 1, "b": -1.0, "c": "2dsphere" };
        let scans = vec![scan("IXSCAN", Some(key)), scan("COLLSCAN", None)];
        let plan = Plan::Scans(scans);
        let expected = r#"IXSCAN { a: 1, b: -1.0, c: "2dsphere" }, COLLSCAN"#;
        assert_eq!(plan.summary().as_deref(), Some(expected));
        assert!(plan.is_planned() && !Plan::ById.is_planned());
        begin(None, &Arc::default());
        note(|| plan);
        note_stage("COUNT_SCAN", "RECORD_STORE_FAST_COUNT");
        let expected = r#"COUNT_SCAN { a: 1, b: -1.0, c: "2dsphere" }, RECORD_STORE_FAST_COUNT"#;
        assert_eq!(end().plan.summary().as_deref(), Some(expected));
    }

    #[test]
    fn statements_are_noted_once_each_and_only_where_asked_for() {
        let outcome = || Ok(StatementOutcome::default());
        begin(None, &Arc::default());
        assert!(Statement::begin().is_none());
        begin(Some(Duration::from_secs(3600)), &Arc::default());
        Statement::begin().expect("they are noted").end(0, outcome);
        assert!(end().statements.is_empty(), "it was fast");
        let live = Arc::default();
        begin(Some(Duration::ZERO), &live);
        for position in [0, 1, 1] {
            let statement = Statement::begin().expect("they are noted");
            note(|| Plan::ById);
            examined::add_counts(0, 1 + u64::from(position == 1));
            statement.end(position, outcome);
        }
        examined::add_counts(0, 4);
        Statement::begin().expect("they are noted").abandon();
        let work = end();
        let documents = |it: &StatementProfile| (it.position, it.examined.documents);
        let each: Vec<_> = work.statements.iter().map(documents).collect();
        assert_eq!(each, [(0, 1), (1, 2)]);
        assert!(matches!(live.plan(), Plan::ById), "it is told while it runs, too");
        assert_eq!(work.examined.documents, 9, "what was examined before it stays");
    }
}
