//! The log's verbosity: levels from 0 to 5 by component, as MongoDB names them.
//!
//! From level 1 of `command` on every operation is logged, not only slow ones. That is all that
//! levels change: others are kept and shown, since tools set and ask for them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder, Value};
use frond_query::Code;

/// The component whose level decides which operations are logged.
const OPERATIONS: &str = "command";
const LEVEL: &str = "verbosity";
const LEVEL_MAX: i64 = 5;
/// The level that stands for that of the component around it.
const INHERITED: i64 = -1;

/// The components, each with its own.
const COMPONENTS: &[(&str, &[&str])] = &[
    ("accessControl", &[]),
    (OPERATIONS, &[]),
    ("control", &[]),
    ("ftdc", &[]),
    ("geo", &[]),
    ("index", &[]),
    ("network", &["connectionPool"]),
    ("query", &[]),
    ("queryStats", &[]),
    ("replication", &["election", "heartbeats", "initialSync", "rollback"]),
    ("sharding", &[]),
    ("storage", &["journal", "recovery", "wt"]),
    ("transaction", &[]),
    ("write", &[]),
];

/// See the module.
#[derive(Default)]
pub(crate) struct Verbosity {
    /// The levels that are set, by component (`storage.journal`); the default one by an empty name.
    levels: Mutex<BTreeMap<String, i64>>,
    is_verbose: AtomicBool,
}

impl Verbosity {
    /// Whether every operation is logged.
    pub fn reports_all(&self) -> bool {
        self.is_verbose.load(Ordering::Relaxed)
    }

    /// The level of what has none of its own.
    pub fn default_level(&self) -> i64 {
        self.levels().get("").copied().unwrap_or(0)
    }

    /// Has what has no level of its own begin at this one.
    pub fn begin_at(&self, level: i32) {
        self.change(vec![(String::new(), i64::from(level).clamp(0, LEVEL_MAX))]);
    }

    /// Sets the level of what has none of its own.
    ///
    /// # Errors
    /// `BadValue` if it is none.
    pub fn set_default_level(&self, wanted: Value<'_>) -> Result<(), Error> {
        self.change(vec![(String::new(), level("logLevel", wanted, 0)?)]);
        Ok(())
    }

    /// Sets levels: `{verbosity: 1, storage: {journal: {verbosity: 2}}}`. All of them, or none.
    ///
    /// # Errors
    /// `BadValue` if a level or a component is none.
    pub fn set(&self, wanted: Document<'_>) -> Result<(), Error> {
        let mut changes = Vec::new();
        for (name, value) in wanted.iter() {
            if name == LEVEL {
                changes.push((String::new(), level(name, value, 0)?));
                continue;
            }
            let known = COMPONENTS.iter().find(|(component, _)| *component == name);
            let Some((component, own)) = known else { return Err(unknown(name)) };
            let Some(within) = value.as_document() else {
                changes.push((name.to_owned(), level(name, value, INHERITED)?));
                continue;
            };
            for (inner, value) in within.iter() {
                let wanted = value.as_document().and_then(|it| it.get(LEVEL)).unwrap_or(value);
                let path = match inner {
                    LEVEL => name.to_owned(),
                    inner if own.contains(&inner) => format!("{component}.{inner}"),
                    _ => return Err(unknown(&format!("{component}.{inner}"))),
                };
                let wanted = level(&path, wanted, INHERITED)?;
                changes.push((path, wanted));
            }
        }
        self.change(changes);
        Ok(())
    }

    fn change(&self, changes: Vec<(String, i64)>) {
        let mut levels = self.levels();
        levels.extend(changes);
        let default = levels.get("").copied().unwrap_or(0);
        let own = levels.get(OPERATIONS).copied().filter(|level| *level != INHERITED);
        self.is_verbose.store(own.unwrap_or(default) > 0, Ordering::Relaxed);
    }

    /// Appends all levels, in the form of `getParameter`.
    pub fn append(&self, answer: &mut DocumentBuilder) {
        let levels = self.levels();
        let of = |path: &str, otherwise: i64| {
            let level = levels.get(path).copied().unwrap_or(otherwise);
            Value::Int32(i32::try_from(level).unwrap_or(0))
        };
        answer.append(LEVEL, of("", 0));
        for (component, own) in COMPONENTS {
            answer.begin_document(component).append(LEVEL, of(component, INHERITED));
            for inner in *own {
                let path = format!("{component}.{inner}");
                answer.begin_document(inner).append(LEVEL, of(&path, INHERITED)).end();
            }
            answer.end();
        }
    }

    fn levels(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, i64>> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn level(name: &str, wanted: Value<'_>, least: i64) -> Result<i64, Error> {
    let level = wanted.as_integer().filter(|level| (least..=LEVEL_MAX).contains(level));
    level.ok_or_else(|| {
        let message = format!("{name} must be a whole number from {least} to {LEVEL_MAX}");
        Error::invalid(Code::BadValue, message)
    })
}

fn unknown(component: &str) -> Error {
    Error::invalid(Code::BadValue, format!("Invalid component name: {component}"))
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn a_component_without_a_level_has_the_default_one() {
        let verbosity = Verbosity::default();
        assert!(!verbosity.reports_all());
        verbosity.set(document! { "verbosity": 1_i32 }.view()).expect("it is a level");
        assert!(verbosity.reports_all());
        let off = document! { "verbosity": 0_i32 };
        verbosity.set(document! { "command": &off }.view()).expect("it is a component");
        assert!(!verbosity.reports_all());
        verbosity.set(document! { "command": -1_i32 }.view()).expect("it is inherited");
        assert!(verbosity.reports_all());
        verbosity.set_default_level(Value::Int32(0)).expect("it is a level");
        assert!(!verbosity.reports_all());
    }

    #[test]
    fn levels_are_shown_and_wrong_ones_change_nothing() {
        let verbosity = Verbosity::default();
        let journal = document! { "verbosity": 2_i32 };
        let storage = document! { "journal": &journal, "verbosity": 1_i32 };
        verbosity.set(document! { "storage": &storage }.view()).expect("they are components");
        let mut shown = DocumentBuilder::new();
        verbosity.append(&mut shown);
        let shown = shown.build();
        let level = |path: [&str; 2]| {
            let within = shown.get(path[0])?.as_document()?.get(path[1])?;
            within.as_integer().or_else(|| within.as_document()?.get("verbosity")?.as_integer())
        };
        assert_eq!(level(["storage", "verbosity"]), Some(1));
        assert_eq!(level(["storage", "journal"]), Some(2));
        assert_eq!(level(["storage", "wt"]), Some(-1));
        assert_eq!(level(["command", "verbosity"]), Some(-1));
        for wrong in [
            document! { "verbosity": 1_i32, "stroage": 1_i32 },
            document! { "verbosity": 6_i32 },
            document! { "verbosity": -1_i32 },
            document! { "command": "1" },
            document! { "storage": &document! { "command": 1_i32 } },
        ] {
            let error = verbosity.set(wrong.view()).expect_err("it is wrong");
            assert_eq!(error.code, Code::BadValue);
        }
        assert_eq!(verbosity.default_level(), 0);
    }
}
