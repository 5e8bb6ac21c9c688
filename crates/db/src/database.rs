//! One version of one database: what a command works on.

use std::sync::Arc;

use frond_doc::ValueBuf;
use frond_engine::{Durability, Snapshot, TreeId};
use frond_query::Code;

use crate::contention::{LatchMode, Scope};
use crate::error::Error;
use crate::fence;
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::name::{DatabaseName, Target, VersionName};
use crate::reader::Reader;
use crate::refs::{branch_ref, history, moment, policy, repository};
use crate::retry::RetryableWrite;
use crate::schema::{CatalogEpoch, KnownDatabase};
use crate::system;
use crate::transact::{Deferred, Outcome};
use crate::transaction::{IsSame, Transaction, not_in_transaction};

/// A database at a version: the working state of a branch (read and written) or a commit (read
/// only). Cloning is cheap. Each call works on what is visible when it begins.
#[derive(Clone)]
pub struct Database {
    frond: Frond,
    name: Arc<DatabaseName>,
    target: Target,
    /// Whether writes ask validators.
    validates: bool,
    /// Whether empty timestamps that are written stay so, instead of standing for "now".
    keeps_empty_timestamps: bool,
    context: Context,
    /// The facts that were known of it when it was opened.
    known: Option<Arc<KnownDatabase>>,
    /// Ends a write's wait for others.
    interrupt: Interrupt,
    /// Takes what writes need not wait for.
    deferred: Option<Arc<Deferred>>,
    /// The move to another line that uses it, by its generation.
    moved_by: Option<i64>,
    /// The roles of the user whose request it is, an array: `$$USER_ROLES`.
    user_roles: Option<Arc<ValueBuf>>,
}

/// The context that the requests on a database belong to.
#[derive(Clone)]
pub enum Context {
    /// Nothing: each is a transaction of its own.
    Alone,
    /// A transaction of several requests.
    Within(Transaction),
    /// Nothing, but what the next write does is remembered, in case it is sent again.
    Retryable(RetryableWrite),
    /// A moment that has gone by, which is only read.
    At(Snapshot),
}

impl Database {
    /// Finds out what `name` names: a branch first, then a revision.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26) if there is no such branch or revision; as [`Reader::get`].
    #[doc(hidden)]
    pub fn resolve(frond: &Frond, name: DatabaseName, context: Context) -> Result<Database, Error> {
        Database::resolve_while(frond, name, context, &Interrupt::default())
    }

    /// As [`Database::resolve`]; a moment whose log is read asks `interrupt` meanwhile.
    ///
    /// # Errors
    /// As there; what `interrupt` says.
    fn resolve_while(
        frond: &Frond,
        name: DatabaseName,
        context: Context,
        interrupt: &Interrupt,
    ) -> Result<Database, Error> {
        let reader = match &context {
            Context::Within(transaction) => Reader::shared(transaction.clone()),
            Context::At(snapshot) => Reader::at(snapshot.clone()),
            _ => Reader::now(frond.engine()),
        };
        if let Some((branch, snapshot)) = moment::find(frond, &reader, &name, interrupt)? {
            frond.check_used_at(&name.name, &snapshot)?;
            return Database::at_moment(frond, name, branch, snapshot);
        }
        let repository = repository(&reader, &name.name)?;
        let default = repository
            .as_ref()
            .map_or(system::DEFAULT_BRANCH, |repository| &repository.default_branch);
        let target = match &name.version {
            VersionName::Default => Target::Branch(default.into()),
            // There is only the branch that a database that doesn't exist yet will begin with.
            VersionName::Named(branch) if branch == default => Target::Branch(default.into()),
            VersionName::Named(version) => {
                let known = match &repository {
                    Some(_) if branch_ref(&reader, &name.name, version)?.is_some() => {
                        Some(Target::Branch(version.as_str().into()))
                    }
                    Some(_) => {
                        history::resolve(&reader, &name.name, version, || frond.time_millis())?
                            .map(|(id, chunk)| Target::Commit(id, chunk))
                    }
                    None => None,
                };
                known.ok_or_else(|| {
                    let message = format!("no branch or revision {version} in {}", name.name);
                    Error::invalid(Code::NamespaceNotFound, message)
                })?
            }
        };
        Ok(Database {
            frond: frond.clone(),
            name: Arc::new(name),
            target,
            validates: true,
            keeps_empty_timestamps: false,
            context,
            known: None,
            interrupt: Interrupt::default(),
            deferred: None,
            moved_by: None,
            user_roles: None,
        })
    }

    /// A branch as it was when `snapshot` was taken.
    fn at_moment(
        frond: &Frond,
        name: DatabaseName,
        branch: String,
        snapshot: Snapshot,
    ) -> Result<Database, Error> {
        let reader = Reader::at(snapshot.clone());
        let repository = repository(&reader, &name.name)?;
        let default = repository
            .as_ref()
            .map_or(system::DEFAULT_BRANCH, |repository| &repository.default_branch);
        // A database that didn't exist was empty, but for other branches.
        if branch != default && branch_ref(&reader, &name.name, &branch)?.is_none() {
            let message = format!("there was no branch {branch} in {} then: {name}", name.name);
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        }
        Ok(Database {
            frond: frond.clone(),
            name: Arc::new(name),
            target: Target::Branch(branch.into()),
            validates: true,
            keeps_empty_timestamps: false,
            context: Context::At(snapshot),
            known: None,
            interrupt: Interrupt::default(),
            deferred: None,
            moved_by: None,
            user_roles: None,
        })
    }

    /// Whether its name may lead elsewhere as time goes on: `shop@{yesterday}`.
    fn is_dated(&self) -> bool {
        let is_dated = |version: &String| version.contains('{');
        let is_fixed = matches!(self.target, Target::Commit(..)) || self.is_past();
        is_fixed && matches!(&self.name.version, VersionName::Named(name) if is_dated(name))
    }

    /// A database whose name was found before.
    pub(crate) fn known(frond: &Frond, known: Arc<KnownDatabase>, context: Context) -> Database {
        Database {
            frond: frond.clone(),
            name: Arc::clone(&known.name),
            target: known.target.clone(),
            validates: true,
            keeps_empty_timestamps: false,
            context,
            known: Some(known),
            interrupt: Interrupt::default(),
            deferred: None,
            moved_by: None,
            user_roles: None,
        }
    }

    /// This database, kept to be found by `name` at `moment`.
    pub(crate) fn kept(self, moment: CatalogEpoch, name: &str) -> Database {
        let (parsed, target) = (Arc::clone(&self.name), self.target.clone());
        let known = self.frond.catalog_cache().keep_database(moment, name, parsed, target);
        Database { known: Some(known), ..self }
    }

    /// Returns the known facts about the collections that a reader sees: `None` if the reader may
    /// see others.
    pub(crate) fn known_to(&self, reader: &Reader<'_>) -> Option<&KnownDatabase> {
        self.known_at(reader.moment()?)
    }

    /// Returns the known facts about the collections in a snapshot that was taken after `moment`
    /// was noted.
    pub(crate) fn known_at(&self, moment: CatalogEpoch) -> Option<&KnownDatabase> {
        let known = self.known.as_deref().filter(|known| known.moment == moment)?;
        self.frond.catalog_cache().is_current(moment).then_some(known)
    }

    /// The same, whose writes ask no validators: `bypassDocumentValidation`.
    pub fn without_validation(&self) -> Database {
        Database { validates: false, ..self.clone() }
    }

    /// The same, whose writes leave empty timestamps as they are: `bypassEmptyTsReplacement`.
    pub fn keeping_empty_timestamps(&self) -> Database {
        Database { keeps_empty_timestamps: true, ..self.clone() }
    }

    pub(crate) fn keeps_empty_timestamps(&self) -> bool {
        self.keeps_empty_timestamps
    }

    /// The same, whose writes wait for those of others only as long as `interrupt` lets them.
    pub fn interruptible(self, interrupt: Interrupt) -> Database {
        Database { interrupt, ..self }
    }

    /// The same, for a user with these roles, an array.
    pub fn for_user_with(self, roles: Arc<ValueBuf>) -> Database {
        Database { user_roles: Some(roles), ..self }
    }

    /// The roles of the user whose request it is; `None` without a login.
    pub(crate) fn user_roles(&self) -> Option<&ValueBuf> {
        self.user_roles.as_deref()
    }

    /// The same, whose inserts, updates and deletes aren't awaited: nothing that they answer may be
    /// passed on before `deferred` has been awaited.
    pub fn deferring(&self, deferred: &Arc<Deferred>) -> Database {
        Database { deferred: Some(Arc::clone(deferred)), ..self.clone() }
    }

    /// The same, whose writes are awaited.
    pub(crate) fn awaiting(&self) -> Database {
        Database { deferred: None, ..self.clone() }
    }

    /// Returns the queue that takes its writes, if they aren't awaited.
    pub(crate) fn deferred(&self) -> Option<&Arc<Deferred>> {
        self.deferred.as_ref()
    }

    /// Returns the check that stops waits and evaluations.
    #[doc(hidden)]
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    pub(crate) fn validates(&self) -> bool {
        self.validates
    }

    /// The name by which it was opened.
    pub fn name(&self) -> &DatabaseName {
        &self.name
    }

    /// Whether it is a commit, or a moment that has gone by, rather than a branch.
    pub fn is_read_only(&self) -> bool {
        matches!(self.target, Target::Commit(..)) || self.is_past()
    }

    /// The branch whose working state this is.
    pub fn branch(&self) -> Option<&str> {
        match &self.target {
            Target::Branch(branch) => Some(branch),
            Target::Commit(..) => None,
        }
    }

    /// The data directory.
    pub fn frond(&self) -> &Frond {
        &self.frond
    }

    #[doc(hidden)]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The database's name without its version.
    #[doc(hidden)]
    pub fn repository_name(&self) -> &str {
        &self.name.name
    }

    /// `shop.things`, as error messages name a collection.
    #[doc(hidden)]
    pub fn namespace(&self, collection: &str) -> String {
        format!("{}.{collection}", self.name)
    }

    /// This database, for one write that a client may send again: what it does is remembered with
    /// it, and the second time that is the answer.
    pub fn retryable(&self, write: RetryableWrite) -> Database {
        if self.is_past() {
            // It is refused, and must not be done to what the name's branch is now.
            return self.clone();
        }
        Database { context: Context::Retryable(write), ..self.clone() }
    }

    /// Another database, for the same transaction.
    pub(crate) fn sibling(&self, name: &str) -> Result<Database, Error> {
        if self.moved_by.is_none() {
            self.frond.check_used_here(name.split('@').next().unwrap_or(name))?;
        }
        let sibling = match &self.context {
            Context::Within(transaction) => transaction.database(name),
            Context::At(snapshot) => {
                let context = Context::At(snapshot.clone());
                Database::resolve(&self.frond, DatabaseName::parse(name)?, context)
            }
            _ => self.frond.database(name),
        }?;
        let user_roles = self.user_roles.clone();
        Ok(Database { validates: self.validates, user_roles, ..sibling })
    }

    /// The transaction that requests on this database belong to.
    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        match &self.context {
            Context::Within(transaction) => Some(transaction),
            _ => None,
        }
    }

    /// Whether it is read as it was at a moment that has gone by.
    pub(crate) fn is_past(&self) -> bool {
        matches!(self.context, Context::At(_))
    }

    /// Refuses to write at a moment that has gone by.
    fn refuse_past(&self) -> Result<(), Error> {
        if !self.is_past() {
            return Ok(());
        }
        let message = format!(
            "{} is a past moment and can't be written: write to a branch of {}",
            self.name, self.name.name
        );
        Err(Error::invalid(Code::UserWritesBlocked, message))
    }

    /// Returns the record to keep of the next write.
    pub(crate) fn retry(&self) -> Option<&RetryableWrite> {
        match &self.context {
            Context::Retryable(write) => Some(write),
            _ => None,
        }
    }

    /// Reads what is visible now, or what the transaction sees.
    #[doc(hidden)]
    pub fn reader(&self) -> Reader<'static> {
        match &self.context {
            Context::Within(transaction) => Reader::shared(transaction.clone()),
            Context::At(snapshot) => Reader::at(snapshot.clone()),
            _ => {
                // Noted first: see the cache.
                let moment = self.frond.catalog_cache().moment();
                Reader::now(self.frond.engine()).at_moment(moment)
            }
        }
    }

    /// Runs `body` as a statement of this database's transaction, or in one of its own
    /// ([`Frond::transact`]).
    pub(crate) fn transact<T>(
        &self,
        scope: Scope,
        mode: LatchMode,
        durability: Durability,
        mut body: impl FnMut(&mut frond_engine::Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        self.refuse_past()?;
        let mut bytes = 0;
        let body = |transaction: &mut frond_engine::Transaction| {
            self.directly(transaction, &mut bytes, &mut body)
        };
        let answer = match &self.context {
            Context::Within(transaction) => transaction.run(scope, mode, &self.interrupt, body),
            _ => {
                let mut body = body;
                let body = |transaction: &mut frond_engine::Transaction,
                            _: Option<CatalogEpoch>| {
                    body(transaction)
                };
                self.frond.transact_noted(scope, mode, durability, &self.interrupt, body)
            }
        }?;
        self.note_written(bytes);
        Ok(answer)
    }

    /// Runs `body`, a direct write; returns how many bytes it wrote.
    fn directly<T>(
        &self,
        transaction: &mut frond_engine::Transaction,
        bytes: &mut u64,
        body: &mut impl FnMut(&mut frond_engine::Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<Outcome<T>, Error> {
        self.refuse_closed(transaction)?;
        let before = transaction.bytes();
        let outcome = body(transaction)?;
        *bytes = transaction.bytes().saturating_sub(before);
        Ok(outcome)
    }

    /// Notes for policies that something was written.
    #[doc(hidden)]
    pub fn note_written(&self, bytes: u64) {
        let Some(branch) = self.branch() else { return };
        let name = self.repository_name();
        match &self.context {
            Context::Within(transaction) => transaction.note_written(name, branch, bytes),
            _ => self.frond.written().note(name, branch, bytes, || self.frond.time_millis()),
        }
    }

    /// Runs `body` in a transaction of its own ([`Frond::transact`]): what concerns versions takes
    /// no part in transactions of several requests, and beside one it would see and move other
    /// things than its client means.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` if this database belongs to one.
    #[doc(hidden)]
    pub fn transact_alone<T>(
        &self,
        scope: Scope,
        mode: LatchMode,
        durability: Durability,
        mut body: impl FnMut(&mut frond_engine::Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        self.refuse_in_transaction("a command of versions")?;
        self.refuse_past()?;
        let body = |transaction: &mut frond_engine::Transaction, _: Option<CatalogEpoch>| {
            self.check_fence(transaction)?;
            self.pass_interrupt_to(transaction);
            body(transaction)
        };
        let answer = self.frond.transact_noted(scope, mode, durability, &self.interrupt, body)?;
        // Some of it leaves something to commit: a restored document, for one.
        self.note_written(1);
        Ok(answer)
    }

    /// Has folds for `transaction` end once the request is to stop.
    pub(crate) fn pass_interrupt_to(&self, transaction: &mut frond_engine::Transaction) {
        if let Some(keep_going) = self.interrupt.keep_going() {
            transaction.interrupt_folds_by(keep_going);
        }
    }

    /// Refuses to change what isn't used at this line: see [`crate::fence`].
    ///
    /// # Errors
    /// `UserWritesBlocked`; `ConflictingOperationInProgress` for a move that is over.
    #[doc(hidden)]
    pub fn check_fence(&self, transaction: &mut frond_engine::Transaction) -> Result<(), Error> {
        fence::check(&self.frond, transaction, self.repository_name(), self.moved_by)
    }

    /// The generation of the move that it is for.
    #[doc(hidden)]
    pub fn mover(&self) -> Option<i64> {
        self.moved_by
    }

    /// The same for the move of this generation: what it does is done only as long as no later one
    /// is known.
    #[doc(hidden)]
    #[must_use]
    pub fn moved_by(mut self, generation: i64) -> Database {
        self.moved_by = Some(generation);
        self
    }

    /// Refuses what can't be part of a transaction of several requests.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` if this database belongs to one.
    #[doc(hidden)]
    pub fn refuse_in_transaction(&self, what: &str) -> Result<(), Error> {
        match &self.context {
            Context::Within(_) => Err(not_in_transaction(what)),
            _ => Ok(()),
        }
    }

    /// Refuses direct writes to a branch that takes none; conflicts with one that closes it
    /// meanwhile. Costs nothing in a data directory without such branches.
    ///
    /// # Errors
    /// `UserWritesBlocked`.
    #[doc(hidden)]
    pub fn refuse_closed(&self, transaction: &mut frond_engine::Transaction) -> Result<(), Error> {
        self.check_fence(transaction)?;
        let Some(branch) = self.branch().filter(|_| self.frond().written().some_closed()) else {
            return Ok(());
        };
        let policy = {
            let reader = Reader::within(self.frond().engine(), transaction);
            policy::read(&reader, self.repository_name(), branch)?
        };
        transaction.validate(TreeId::SYSTEM, system::policy_key(self.repository_name(), branch));
        if !policy.closed {
            return Ok(());
        }
        let message = format!("branch {branch} takes no direct writes: merge into it");
        Err(Error::invalid(Code::UserWritesBlocked, message))
    }

    /// The branch to write to.
    ///
    /// # Errors
    /// `UserWritesBlocked` if this is a commit, or read at a moment that has gone by.
    #[doc(hidden)]
    pub fn writable_branch(&self) -> Result<&str, Error> {
        self.refuse_past()?;
        self.branch().ok_or_else(|| {
            let message = format!(
                "{} is a commit and can't be written: write to a branch of {}",
                self.name, self.name.name
            );
            Error::invalid(Code::UserWritesBlocked, message)
        })
    }

    /// The branch whose working state is looked at.
    ///
    /// # Errors
    /// `IllegalOperation` if this is a commit.
    #[doc(hidden)]
    pub fn working_branch(&self) -> Result<&str, Error> {
        self.branch().ok_or_else(|| {
            let message = format!(
                "{} is a commit and has no working state: name a branch of {}",
                self.name, self.name.name
            );
            Error::invalid(Code::IllegalOperation, message)
        })
    }

    /// As [`Database::transact`], for the statement of a writer that is given the moment of the
    /// catalog ([`Frond::transact_statement`]). `is_same` says whether a client is shown the same
    /// by two answers, if they may be the same however often others were first.
    pub(crate) fn transact_noted<T>(
        &self,
        scope: Scope,
        durability: Durability,
        is_same: Option<IsSame<T>>,
        mut body: impl FnMut(
            &mut frond_engine::Transaction,
            Option<CatalogEpoch>,
        ) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        self.refuse_past()?;
        let mut bytes = 0;
        let answer = match &self.context {
            Context::Within(within) => {
                within.run_statement(scope, &self.interrupt, is_same, |transaction| {
                    let body =
                        &mut |own: &mut frond_engine::Transaction| body(own, within.moment());
                    self.directly(transaction, &mut bytes, body)
                })
            }
            _ => {
                let waits = (&self.interrupt, self.deferred.as_deref());
                self.frond.transact_statement(scope, durability, waits, |own, moment| {
                    self.directly(own, &mut bytes, &mut |own| body(own, moment))
                })
            }
        }?;
        self.note_written(bytes);
        Ok(answer)
    }
}

impl Frond {
    /// The version of a database that `name` (as it comes over the wire: `shop@feature`) names. A
    /// database that doesn't exist yet is empty and begins to exist with the first write; a branch
    /// or commit that doesn't exist is an error.
    ///
    /// # Errors
    /// `InvalidNamespace` (73) if no database can have the name; `NamespaceNotFound` (26) if there
    /// is no such branch or revision.
    pub fn database(&self, name: &str) -> Result<Database, Error> {
        self.database_while(name, &Interrupt::default())
    }

    /// As [`Frond::database`]; where `name` names a moment that is made of the log again,
    /// `interrupt` is asked meanwhile.
    ///
    /// # Errors
    /// As there; what `interrupt` says.
    pub fn database_while(&self, name: &str, interrupt: &Interrupt) -> Result<Database, Error> {
        let cache = self.catalog_cache();
        let moment = cache.moment();
        if let Some(known) = moment.and_then(|moment| cache.database(moment, name)) {
            return Ok(Database::known(self, known, Context::Alone));
        }
        let (parsed, context) = (DatabaseName::parse(name)?, Context::Alone);
        let database = Database::resolve_while(self, parsed, context, interrupt)?;
        Ok(match moment.filter(|moment| cache.is_current(*moment)) {
            Some(moment) if !database.is_dated() => database.kept(moment, name),
            _ => database,
        })
    }
}

impl Transaction {
    /// The version of a database that `name` names, as this transaction sees it; what is read and
    /// written through it is read and written in the transaction.
    ///
    /// # Errors
    /// As [`Frond::database`]; `NoSuchTransaction` (251) if the transaction has ended.
    pub fn database(&self, name: &str) -> Result<Database, Error> {
        let frond = self.frond();
        let context = Context::Within(self.clone());
        let known = self.moment().and_then(|moment| frond.catalog_cache().database(moment, name));
        // The refs that lead to a commit must have been read, so that the snapshot can't stay when
        // they change.
        let is_enough = |known: &Arc<KnownDatabase>| {
            let is_branch = matches!(known.target, Target::Branch(_));
            is_branch && frond.catalog_cache().is_current(known.moment)
        };
        if let Some(known) = known.filter(is_enough) {
            return Ok(Database::known(frond, known, context));
        }
        let database = Database::resolve(frond, DatabaseName::parse(name)?, context)?;
        let moment = self.moment().filter(|moment| frond.catalog_cache().is_current(*moment));
        Ok(match moment {
            Some(moment) if !database.is_dated() => database.kept(moment, name),
            _ => database,
        })
    }
}
