//! The policy for commits of a database that are made without being asked for: when, what they say,
//! which of them stay, and what every commit must pass.
//!
//! A policy is one document, given by a client and stored as it came:
//!
//! ```text
//! everySeconds: 3600          commit what changed, so often
//! changedBytes: 10000000      commit once about so much was written
//! branches: ["main", "release/*"]   only these; otherwise every branch
//! maxSeconds: 600             a commit that takes longer isn't made
//! author: "robot"             of these commits
//! message: "{branch}: {changes} documents"
//! thin: [{olderThanSeconds: 86400, keepEverySeconds: 3600}]
//! rules: [{name: "prices", collection: "items", branches: ["main", "release/**"],
//!          documents: {price: {$gt: 0}}, changes: {...}}]
//! ```
//!
//! `rules` are validators that run on a commit's difference from its first parent, however it is
//! made: by a commit, a merge, a pick; and by a push, for each new commit. Where a branch moves to
//! a commit that was here already (a merge or a push that is a fast-forward), they run on what that
//! changes as a whole, as they would for a merge's commit. `documents` is a filter that each
//! document must pass which was added or changed, `changes` one that each row of `$diff` must pass.
//! They cost what the difference does. A rule holds on every branch, or on those that its patterns
//! name ([`branch_pattern`](super::branch_pattern)); on a branch that comes to have such a name
//! (one that is made, renamed or pushed) its whole content is judged, as if it were added. A rule
//! judges the same change the same way each time: one that asks for chance is refused when it is
//! set.
//!
//! The policy is local to the data directory, as refs are: a clone makes its own.

use std::time::Duration;

use frond_db::inside::large::read_document;
use frond_db::inside::refs::format;
use frond_db::inside::{
    Error, LatchMode, Outcome, Reader, Scope, TreeRef, parse_variables, refs, system,
};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::{Durability, Engine, Transaction, TreeId};
use frond_query::expression::Variables;
use frond_store::ChunkHash;
use frond_tree::{Tree, Value as TreeValue};

use crate::diff::changed_collections;
use crate::policy::branch_pattern::{self, BranchPattern};
use crate::policy::policy_fields::{check_fields, list, positive, text, wrong};
use crate::policy::rule::{Rule, Violations};
use crate::refs::branch_move::BranchMove;
use crate::repository::Repository;
use crate::{CollectionChange, DiffDetail, DiffRow, history};

/// Words in braces that a message may hold.
const PLACEHOLDERS: &[&str] = &["database", "branch", "reason", "changes", "collections"];
const FIELDS: &[&str] = &[
    "author",
    "branches",
    "changedBytes",
    "everySeconds",
    "maxSeconds",
    "message",
    "rules",
    "thin",
];
/// The message of a commit whose policy has none.
const MESSAGE_DEFAULT: &str = "Automatic commit of {branch} ({reason})";

/// The time that an automatic commit may take that must pass rules, unless the policy says more or
/// less: to judge a million changed documents takes some ten seconds.
const RULES_TIME_MAX: Duration = Duration::from_secs(120);

/// The rules of a database for making commits: when and how.
#[derive(Clone, Debug)]
pub struct CommitPolicy {
    document: DocumentBuf,
    /// Commit what changed, so often.
    pub(crate) every_millis: Option<i64>,
    /// Commit once about so many bytes were written.
    pub(crate) changed_bytes: Option<u64>,
    /// Only these branches.
    branches: Option<Vec<BranchPattern>>,
    /// The time that a commit may take.
    pub(crate) max_seconds: Option<u64>,
    pub(crate) author: Option<String>,
    pub(crate) message: String,
    /// Youngest first.
    pub(crate) thin: Vec<Tier>,
    rules: Vec<Rule>,
}

/// A rule by which one of the automatic commits older than `older_millis` stays in each
/// `every_millis`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tier {
    pub older_millis: i64,
    pub every_millis: i64,
}

impl CommitPolicy {
    /// Reads a policy.
    ///
    /// # Errors
    /// `BadValue` that names what is wrong, chance in a rule, too; what is wrong with a filter.
    pub fn parse(document: Document<'_>, now_millis: i64) -> Result<CommitPolicy, Error> {
        for rule in list(document, "rules")?.iter().flat_map(|list| list.iter()) {
            Rule::refuse_chance(rule)?;
        }
        CommitPolicy::parse_for(document, &Variables::new(now_millis, None)?)
    }

    /// As [`CommitPolicy::parse`], to be checked for a request with these variables.
    fn parse_for(document: Document<'_>, variables: &Variables) -> Result<CommitPolicy, Error> {
        check_fields(document, FIELDS)?;
        let branches = branch_pattern::list_of(document)?;
        let mut rules = Vec::new();
        for rule in list(document, "rules")?.iter().flat_map(|list| list.iter()) {
            rules.push(Rule::parse(rule, variables)?);
        }
        let mut thin = Vec::new();
        for tier in list(document, "thin")?.iter().flat_map(|list| list.iter()) {
            thin.push(Tier::parse(tier)?);
        }
        thin.sort_by_key(|tier| tier.older_millis);
        let message = text(document, "message")?.unwrap_or_else(|| MESSAGE_DEFAULT.to_owned());
        check_message(&message)?;
        Ok(CommitPolicy {
            document: document.to_buf(),
            every_millis: positive(document, "everySeconds")?.map(|n| n.saturating_mul(1_000)),
            changed_bytes: positive(document, "changedBytes")?.map(i64::unsigned_abs),
            branches,
            max_seconds: positive(document, "maxSeconds")?.map(i64::unsigned_abs),
            author: text(document, "author")?,
            message,
            thin,
            rules,
        })
    }

    /// The policy as it was given.
    pub fn to_document(&self) -> &DocumentBuf {
        &self.document
    }

    /// Whether it makes commits of this branch.
    pub(crate) fn commits(&self, branch: &str) -> bool {
        let is_automatic = self.every_millis.is_some() || self.changed_bytes.is_some();
        let is_named = |names: &Vec<BranchPattern>| names.iter().any(|it| it.matches(branch));
        is_automatic && self.branches.as_ref().is_none_or(is_named)
    }

    /// The time that an automatic commit may take: by default bounded where it must pass rules.
    pub(crate) fn time_max(&self) -> Option<Duration> {
        let own = self.max_seconds.map(Duration::from_secs);
        own.or((!self.rules.is_empty()).then_some(RULES_TIME_MAX))
    }

    /// Checks what `subject`, which makes `to` of `from`, changes by the rules that are `meant`.
    ///
    /// # Errors
    /// `DocumentValidationFailure` (121) that names the rule and documents.
    fn check(
        &self,
        database: &Repository,
        subject: &str,
        (from, to): (&Tree, &Tree),
        meant: impl Fn(&Rule) -> bool,
    ) -> Result<(), Error> {
        let meant: Vec<&Rule> = self.rules.iter().filter(|rule| meant(rule)).collect();
        if meant.is_empty() || from.root == to.root {
            return Ok(());
        }
        let store = database.frond().engine().store();
        for changed in changed_collections(store, from, to)? {
            let rules: Vec<&Rule> =
                meant.iter().copied().filter(|rule| rule.collection == changed.name).collect();
            if rules.is_empty() {
                continue;
            }
            let mut violations = Violations::default();
            for change in changed.documents(store)? {
                database.interrupt().check()?;
                let change = change?;
                let read = |value: &Option<TreeValue>| {
                    value.as_ref().map(|value| read_document(&**store, value)).transpose()
                };
                let (from, to) = (read(&change.from)?, read(&change.to)?);
                let kind = CollectionChange::between(from.is_some(), to.is_some());
                let detail = DiffDetail::Document { from, to };
                let row = DiffRow { collection: changed.name.clone(), change: kind, detail };
                for rule in &rules {
                    rule.check(&row, &mut violations)?;
                }
            }
            violations.refuse(subject, &database.namespace(&changed.name))?;
        }
        Ok(())
    }
}

/// Refuses a message with words in braces that mean nothing.
fn check_message(message: &str) -> Result<(), Error> {
    for part in message.split('{').skip(1) {
        let word = part.split('}').next().unwrap_or_default();
        if !PLACEHOLDERS.contains(&word) || word.len() == part.len() {
            let known = PLACEHOLDERS.join("}, {");
            return Err(wrong(format_args!("message: {{{word}}} is none of {{{known}}}")));
        }
    }
    Ok(())
}

impl Tier {
    fn parse(tier: Value<'_>) -> Result<Tier, Error> {
        let tier = tier.as_document().ok_or_else(|| wrong("thin must hold documents"))?;
        check_fields(tier, &["olderThanSeconds", "keepEverySeconds"])?;
        let seconds = |name: &str| {
            let seconds = positive(tier, name)?;
            let seconds = seconds.ok_or_else(|| wrong(format_args!("thin needs {name}")))?;
            Ok::<i64, Error>(seconds.saturating_mul(1_000))
        };
        let (older_millis, every_millis) =
            (seconds("olderThanSeconds")?, seconds("keepEverySeconds")?);
        Ok(Tier { older_millis, every_millis })
    }
}

/// The policy that `database` has, its rules to be checked for a request with these variables.
fn read_for(
    reader: &Reader<'_>,
    database: &str,
    variables: &Variables,
) -> Result<Option<CommitPolicy>, Error> {
    let Some(document) = stored(reader, database)? else { return Ok(None) };
    CommitPolicy::parse_for(document.view(), variables).map(Some)
}

/// The policy that `database` has.
pub(crate) fn read(
    reader: &Reader<'_>,
    database: &str,
    now_millis: i64,
) -> Result<Option<CommitPolicy>, Error> {
    read_for(reader, database, &Variables::new(now_millis, None)?)
}

/// The policy that `database` has, as it was given.
pub(crate) fn stored(reader: &Reader<'_>, database: &str) -> Result<Option<DocumentBuf>, Error> {
    let key = system::commit_policy_key(database);
    let bytes = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &key)?;
    bytes.map(system::record).transpose()
}

/// Has the policy of `database`, where it or a rule lists the branch `old`, list `new` instead: its
/// name from `transaction` on. Patterns stay.
pub(crate) fn rename_branch(
    engine: &Engine,
    transaction: &mut Transaction,
    database: &str,
    names: (&str, &str),
) -> Result<(), Error> {
    let key = system::commit_policy_key(database);
    transaction.validate(TreeId::SYSTEM, key.clone());
    let Some(policy) = stored(&Reader::within(engine, transaction), database)? else {
        return Ok(());
    };
    let mut renamed = DocumentBuilder::new();
    for (field, value) in policy.iter() {
        let Some(rules) = value.as_array().filter(|_| field == "rules") else {
            append_renamed(&mut renamed, (field, value), names);
            continue;
        };
        renamed.begin_array(field);
        for rule in rules.iter() {
            let Some(rule) = rule.as_document() else {
                renamed.push(rule);
                continue;
            };
            renamed.push_begin_document();
            rule.iter().for_each(|field| append_renamed(&mut renamed, field, names));
            renamed.end();
        }
        renamed.end();
    }
    let renamed = renamed.build();
    if renamed.as_bytes() == policy.as_bytes() {
        return Ok(());
    }
    Ok(transaction.put(TreeId::SYSTEM, key, TreeValue::inline(renamed.into_bytes()))?)
}

/// Appends a field of a policy or a rule, with the branch's new name if it is a list of branches.
fn append_renamed(
    renamed: &mut DocumentBuilder,
    (field, value): (&str, Value<'_>),
    (old, new): (&str, &str),
) {
    let Some(branches) = value.as_array().filter(|_| field == "branches") else {
        renamed.append(field, value);
        return;
    };
    renamed.begin_array(field);
    for branch in branches.iter() {
        let is_old = branch.as_str() == Some(old);
        renamed.push(if is_old { Value::String(new) } else { branch });
    }
    renamed.end();
}

impl Repository {
    /// Returns when and how commits of this database are made, if there is a policy.
    ///
    /// # Errors
    /// `Damaged` if the record of it isn't one; `Unavailable` if the disk doesn't answer.
    pub fn commit_policy(&self) -> Result<Option<CommitPolicy>, Error> {
        read(&self.reader(), self.repository_name(), self.frond().now_millis())
    }

    /// Gives this database a policy, or takes it away.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such database.
    pub fn set_commit_policy(&self, policy: Option<&CommitPolicy>) -> Result<(), Error> {
        let name = self.repository_name();
        let key = system::commit_policy_key(name);
        let scope = Scope::branch(name, "");
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let is_there = {
                let reader = Reader::within(self.frond().engine(), transaction);
                refs::repository(&reader, name)?.is_some()
            };
            if !is_there {
                return Err(refs::missing(name));
            }
            transaction.validate(TreeId::SYSTEM, system::repository_key(name));
            match policy {
                Some(policy) => {
                    let record = TreeValue::inline(policy.document.clone().into_bytes());
                    transaction.put(TreeId::SYSTEM, key.clone(), record)?;
                }
                None if transaction.get(TreeId::SYSTEM, &key)?.is_some() => {
                    transaction.delete(TreeId::SYSTEM, key.clone())?;
                }
                None => return Ok(Outcome::Discard(())),
            }
            Ok(Outcome::Commit(()))
        })?;
        self.frond().written().watch(name, policy.is_some());
        Ok(())
    }

    /// Checks what an act that moves a branch from `from` to `to` changes by the policy's rules,
    /// and conflicts with a transaction that changes these meanwhile.
    ///
    /// # Errors
    /// `DocumentValidationFailure` (121) that names the rule and documents.
    pub(crate) fn check_move(
        &self,
        transaction: &mut Transaction,
        (branch, act): (&str, BranchMove),
        trees: (&Tree, &Tree),
    ) -> Result<(), Error> {
        let Some(policy) = self.validated_policy(transaction)? else { return Ok(()) };
        policy.check(self, act.name(), trees, |rule| rule.holds_on(branch))
    }

    /// Checks the whole content of a branch that comes to be called `branch`, at a commit, by the
    /// rules that name such branches, but for those that held on it under the name `before`.
    ///
    /// # Errors
    /// As `check_move`.
    pub(crate) fn check_named(
        &self,
        transaction: &mut Transaction,
        (before, branch): (Option<&str>, &str),
        head: Option<ChunkHash>,
    ) -> Result<(), Error> {
        let Some(policy) = self.validated_policy(transaction)? else { return Ok(()) };
        let Some(head) = head else { return Ok(()) };
        let store = &**self.frond().engine().store();
        let content = history::load(store, head)?.catalog;
        let empty = Tree::empty(store, content.format)?;
        let subject = format!("what branch {branch} would have");
        policy.check(self, &subject, (&empty, &content), |rule| {
            let held = before.is_some_and(|before| rule.holds_on(before));
            rule.names_branches() && rule.holds_on(branch) && !held
        })
    }

    /// As `check_move`, for what a branch is brought besides commits that are judged one by one:
    /// another branch may have it, and break a rule by right. `changed` is called only if there are
    /// rules for this branch; `None`: nothing is brought.
    ///
    /// # Errors
    /// As `check_move`; what `changed` returns.
    pub(crate) fn check_brought(
        &self,
        transaction: &mut Transaction,
        (branch, act): (&str, BranchMove),
        changed: impl FnOnce() -> Result<Option<(Tree, Tree)>, Error>,
    ) -> Result<(), Error> {
        let Some(policy) = self.validated_policy(transaction)? else { return Ok(()) };
        let judges = |rule: &Rule| rule.holds_on(branch);
        if !policy.rules.iter().any(judges) {
            return Ok(());
        }
        match changed()? {
            Some((before, after)) => policy.check(self, act.name(), (&before, &after), judges),
            None => Ok(()),
        }
    }

    /// As `check_move`, for commits that came from elsewhere to a branch, each against its first
    /// parent; against nothing, if it has none or that isn't here.
    ///
    /// # Errors
    /// As `check_move`.
    pub(crate) fn check_commits(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        commits: &[ChunkHash],
    ) -> Result<(), Error> {
        let Some(policy) = self.validated_policy(transaction)? else { return Ok(()) };
        if policy.rules.is_empty() {
            return Ok(());
        }
        let store = self.frond().engine().store();
        for hash in commits {
            let commit = history::load(&**store, *hash)?;
            let mut before = Tree::empty(&**store, commit.catalog.format)?;
            if let Some(parent) = commit.parents.first()
                && store.has_many(&[*parent])?.contains(&true)
            {
                before = history::load(&**store, *parent)?.catalog;
            }
            let subject = format!("commit {}", format::id_of(*hash));
            let trees = (&before, &commit.catalog);
            policy.check(self, &subject, trees, |rule| rule.holds_on(branch))?;
        }
        Ok(())
    }

    /// The policy; conflicts with a transaction that changes it meanwhile.
    fn validated_policy(
        &self,
        transaction: &mut Transaction,
    ) -> Result<Option<CommitPolicy>, Error> {
        let policy = {
            let reader = Reader::within(self.frond().engine(), transaction);
            let variables = parse_variables(self.frond(), None, self.interrupt())?;
            read_for(&reader, self.repository_name(), &variables)?
        };
        let key = system::commit_policy_key(self.repository_name());
        transaction.validate(TreeId::SYSTEM, key);
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    fn parse(text: &str) -> Result<CommitPolicy, Error> {
        CommitPolicy::parse(extended_json::parse(text).expect("a document").view(), 0)
    }

    #[test]
    fn policies() {
        let policy = parse(
            r#"{"everySeconds": 60, "branches": ["main"], "message": "{branch} of {database}",
                "thin": [{"olderThanSeconds": 9, "keepEverySeconds": 3},
                         {"olderThanSeconds": 4, "keepEverySeconds": 2}],
                "rules": [{"name": "r", "collection": "c", "documents": {"a": {"$gt": 0}}}]}"#,
        )
        .expect("a policy");
        assert!(policy.commits("main") && !policy.commits("other"));
        assert_eq!(policy.every_millis, Some(60_000));
        assert_eq!(policy.thin[0], Tier { older_millis: 4_000, every_millis: 2_000 });
        assert!(!parse("{}").expect("a policy").commits("main"));
        for wrong in [
            r#"{"other": 1}"#,
            r#"{"everySeconds": 0}"#,
            r#"{"everySeconds": "1"}"#,
            r#"{"message": "{what}"}"#,
            r#"{"message": "{branch"}"#,
            r#"{"branches": [1]}"#,
            r#"{"thin": [{"olderThanSeconds": 1}]}"#,
            r#"{"thin": {"a": 1}}"#,
            r#"{"rules": [{"name": "r", "collection": "c"}]}"#,
            r#"{"rules": [{"name": "r", "documents": {}}]}"#,
            r#"{"rules": [{"name": "r", "collection": "c", "documents": {"a": {"$no": 1}}}]}"#,
            r#"{"branches": [""]}"#,
            r#"{"rules": [{"name": "r", "collection": "c", "branches": 1, "documents": {}}]}"#,
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_by_chance_are_refused_when_they_are_set() {
        for (filters, operator) in [
            (r#""documents": {"$expr": {"$lt": [{"$rand": {}}, "$a"]}}"#, "$rand"),
            (r#""documents": {"$or": [{"a": 1}, {"$sampleRate": 0.25}]}"#, "$sampleRate"),
            (r#""changes": {"$expr": {"$gt": [{"$add": [1, {"$rand": {}}]}, 1]}}"#, "$rand"),
        ] {
            let text = format!(r#"{{"rules": [{{"name": "odd", "collection": "c", {filters}}}]}}"#);
            let error = parse(&text).unwrap_err();
            assert_eq!(error.code, frond_query::Code::BadValue, "{text}");
            assert!(error.message.contains("rule odd asks"), "{error}");
            assert!(error.message.contains(operator), "{error}");
            // One that was set before goes on.
            let stored = extended_json::parse(&text).expect("a document");
            let variables = Variables::new(0, None).expect("none");
            assert!(CommitPolicy::parse_for(stored.view(), &variables).is_ok());
        }
        let literal = r#"{"rules": [{"name": "r", "collection": "c", "documents":
            {"$expr": {"$ne": ["$a", {"$literal": {"$rand": 1}}]}}}]}"#;
        assert!(parse(literal).is_ok());
    }
}
