//! Remembers the rights that a command used, so that they can be checked again later.
//!
//! A cursor may be open for long, a change stream for ever, and its user may lose a role meanwhile.
//! So each of its batches is checked anew: whether its user still has all rights that the command
//! which opened it used. Names were resolved then: a cursor goes on where it began.

use super::{Action, Branch, Grants, Target};

/// One thing that was allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Right {
    Cluster(Action),
    /// On every database, those to come too.
    Everywhere(Action),
    Namespace {
        action: Action,
        database: String,
        collection: Option<String>,
        branch: OnBranch,
    },
}

/// A [`Branch`] that owns its name.
#[derive(Clone, PartialEq, Eq, Debug)]
enum OnBranch {
    Named(String),
    All,
    Version,
}

/// The rights that a command used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Granted {
    rights: Vec<Right>,
}

impl Granted {
    /// Notes that `action` was allowed on `target`.
    pub fn note(&mut self, action: Action, target: Target<'_>) {
        let right = match target {
            Target::Cluster => Right::Cluster(action),
            Target::Namespace { database, collection, branch } => Right::Namespace {
                action,
                database: database.to_owned(),
                collection: collection.map(str::to_owned),
                branch: match branch {
                    Branch::Named(name) => OnBranch::Named(name.to_owned()),
                    Branch::All => OnBranch::All,
                    Branch::Version => OnBranch::Version,
                },
            },
        };
        self.push(right);
    }

    /// Notes that `action` was allowed on every database.
    pub fn note_everywhere(&mut self, action: Action) {
        self.push(Right::Everywhere(action));
    }

    /// Whether `grants` allow all of it.
    pub fn is_within(&self, grants: &Grants) -> bool {
        self.rights.iter().all(|right| match right {
            Right::Cluster(action) => grants.allow(*action, Target::Cluster),
            Right::Everywhere(action) => grants.allow_everywhere(*action),
            Right::Namespace { action, database, collection, branch } => {
                let branch = match branch {
                    OnBranch::Named(name) => Branch::Named(name),
                    OnBranch::All => Branch::All,
                    OnBranch::Version => Branch::Version,
                };
                let collection = collection.as_deref();
                grants.allow(*action, Target::Namespace { database, collection, branch })
            }
        })
    }

    fn push(&mut self, right: Right) {
        if !self.rights.contains(&right) {
            self.rights.push(right);
        }
    }
}
