//! Following, as long as the connections hold.
//!
//! *The copy*: collection by collection, batch by batch in the order of `_id`. A batch is what the
//! source had at one time, which its answer names. Before it is written the stream is taken over up
//! to that time: changes of documents that are copied already are made, others are passed over,
//! since the batch, or one that comes, has them. So what is copied always is, to the byte, what the
//! source had where the stream is; a copy takes as long as it takes, and begins where it ended.
//! (Netflix's DBLog, "A Watermark Based Change-Data-Capture Framework", 2020, has its watermarks
//! written to the source; here the time is one.)
//!
//! A collection whose `_id`s are ordered by a language, or that has no index of them, is copied in
//! one go, and from its beginning if that is cut off.
//!
//! *Collections* are distinguished by their ids: one that was dropped and made again under its name
//! isn't the one that was listed. *Indexes* are listed and made when a collection's documents are
//! here. Earlier events about them are passed over, since the list has these indexes.
//!
//! *Transactions of the source* are taken over whole, unless one is larger than [`HELD_BYTES`]; a
//! version never has a part of one.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Timestamp, Value};

use crate::commands::follow::Follow;
use crate::commands::follow::changes::Changes;
use crate::commands::follow::event::{Change, Event, Kind};
use crate::commands::follow::progress::FollowDisplay;
use crate::commands::follow::record::{COLLECTION, CopiedUpTo, Followed, Record};
use crate::commands::follow::source::{Listed, Source, is_in_order, is_of_id};
use crate::commands::follow::target::Target;
use crate::failure::Failure;
use crate::output::text_of;

/// Events of one transaction of the source that are held until it is whole.
const HELD_BYTES: usize = 64 << 20;
/// The bytes that are written in one transaction, unless one of the source is larger.
const WRITTEN_BYTES: usize = 16 << 20;
const WRITTEN_CHANGES: usize = 5_000;
/// The time that the source is asked to wait for an event.
const WAIT_MILLIS: i64 = 1_000;
/// The time that it is asked to wait where only what is there already is wanted.
const NO_WAIT_MILLIS: i64 = 1;
/// The place in the source's log is noted so often where nothing changes, so that the log isn't
/// asked for what it doesn't reach.
const NOTED_EVERY: Duration = Duration::from_secs(60);
/// The option by which a collection keeps documents as they were before they changed.
const IMAGES: &str = "changeStreamPreAndPostImages";
const NAMESPACE_NOT_FOUND: i64 = 26;
/// Nothing to commit.
const BAD_VALUE: i64 = 2;

/// One session.
pub struct Session<'a, 'b, 't> {
    follow: &'a Follow,
    source: Source,
    target: Target<'b>,
    /// As it is stored.
    record: Record,
    /// The place of the event up to which all that concerns the copy is taken over.
    place: DocumentBuf,
    /// The time when the place was stored last.
    noted: Instant,
    /// The time when what is taken over happened at the source.
    reached: Timestamp,
    /// The events that were read and not applied.
    events: VecDeque<Event>,
    /// Collections that aren't copied.
    left_out: HashSet<String>,
    display: &'a mut FollowDisplay<'t>,
}

impl<'a, 'b, 't> Session<'a, 'b, 't> {
    /// Goes on where the copy is, or begins it.
    ///
    /// # Errors
    /// [`Failure::Lost`] if source or copy can't be reached; what either refuses.
    pub fn begin(
        follow: &'a Follow,
        mut source: Source,
        mut target: Target<'b>,
        display: &'a mut FollowDisplay<'t>,
    ) -> Result<Session<'a, 'b, 't>, Failure> {
        let name = source.database.clone();
        let record = match target.record()? {
            Some(record) if record.source != name => {
                return Err(Failure::failed(format!(
                    "{} is a copy of {}, not of {name}",
                    target.database, record.source
                )));
            }
            Some(record) => record,
            None => {
                let record = first_record(&name, &mut source, &mut target)?;
                if record.collections.is_empty() {
                    display.has_nothing();
                }
                record
            }
        };
        source.watch(Some(&record.token))?;
        let (place, noted) = (record.token.clone(), Instant::now());
        let (events, left_out) = (VecDeque::new(), HashSet::new());
        let reached = Timestamp(0);
        let mut session = Session {
            follow,
            source,
            target,
            record,
            place,
            noted,
            reached,
            events,
            left_out,
            display,
        };
        session.make_views()?;
        Ok(session)
    }

    /// Follows, for ever or until all is here that the source had at the beginning.
    ///
    /// # Errors
    /// As [`Session::begin`].
    pub fn run(&mut self) -> Result<(), Failure> {
        loop {
            let next = self
                .record
                .collections
                .iter()
                .find(|it| !matches!(it.reach, CopiedUpTo::All))
                .cloned();
            match next {
                Some(followed) => self.copy_some(&followed)?,
                None => {
                    // What came may be a collection that is still to be copied.
                    if self.follow_some()? && self.follow.once && self.record.is_whole() {
                        self.commit()?;
                        return self.display.end(&self.record);
                    }
                }
            }
        }
    }

    /// Makes the views that aren't there, and reports what isn't copied.
    fn make_views(&mut self) -> Result<(), Failure> {
        for listed in self.source.collections(None)? {
            if listed.kind == "view" {
                if let Some(refused) = self.target.create(&listed.name, listed.options.view())? {
                    self.display
                        .left_out(&listed.name, &format!("a view that is refused: {refused}"));
                }
            } else if let Some(why) = omission_reason(&listed) {
                self.left_out.insert(listed.name.clone());
                self.display.left_out(&listed.name, why);
            }
        }
        Ok(())
    }

    /// Copies the next batch of a collection.
    fn copy_some(&mut self, followed: &Followed) -> Result<(), Failure> {
        let name = &followed.name;
        if matches!(followed.reach, CopiedUpTo::Nothing) {
            // The copy may have been renamed already by a process that was killed before it noted
            // that: made again under this name, it would be in the way.
            self.catch_up(Some(self.source.opened))?;
            if !self.is_still(followed) {
                return Ok(());
            }
            let listed = self.source.collections(Some(name))?;
            let Some(listed) = listed.iter().find(|it| followed.is(it.uuid.as_deref())) else {
                // It has another name, or is gone: the stream has the event.
                self.catch_up(None)?;
                if self.record.named(name).is_some_and(|it| it.is(followed.uuid.as_deref())) {
                    self.record.forget(name);
                }
                return Ok(());
            };
            if let Some(refused) = self.target.create(name, listed.options.view())? {
                self.display.left_out(&format!("{name}: options"), &refused);
            }
            if !is_in_order(listed.options.view()) {
                return self.copy_whole(followed, listed.options.view());
            }
        }
        let after = match &followed.reach {
            CopiedUpTo::UpTo(last) => Some(last),
            _ => None,
        };
        let batch = self.source.batch(name, after)?;
        self.catch_up(Some(batch.time))?;
        if !self.is_still(followed) {
            return Ok(());
        }
        let Some(last) = batch.documents.last().and_then(|it| Some(it.get("_id")?.to_buf())) else {
            return self.finish_copy(followed);
        };
        let (changes, bytes) = as_changes(name, batch.documents)?;
        self.display.copied(name, changes.count(), bytes);
        self.take_over(&changes, |after| {
            if let Some(followed) = after.named(name) {
                followed.reach = CopiedUpTo::UpTo(last.clone());
            }
        })
    }

    /// Copies a collection in one go.
    fn copy_whole(&mut self, followed: &Followed, options: Document<'_>) -> Result<(), Failure> {
        let name = &followed.name;
        // A copy that was cut off is dropped.
        self.target.drop_collection(name)?;
        self.target.create(name, options)?;
        let mut batch = self.source.whole(name)?;
        let time = batch.time;
        loop {
            let (changes, bytes) = as_changes(name, std::mem::take(&mut batch.documents))?;
            self.display.copied(name, changes.count(), bytes);
            self.take_over(&changes, |_| ())?;
            if !self.source.more(name, &mut batch)? {
                break;
            }
        }
        self.catch_up(Some(time))?;
        if self.is_still(followed) { self.finish_copy(followed) } else { Ok(()) }
    }

    /// Whether a collection is what it was, after events.
    fn is_still(&mut self, followed: &Followed) -> bool {
        self.record.named(&followed.name).is_some_and(|it| it.is(followed.uuid.as_deref()))
    }

    /// Makes the indexes of a collection whose documents are here.
    fn finish_copy(&mut self, followed: &Followed) -> Result<(), Failure> {
        let name = &followed.name;
        let indexes = match self.source.indexes(name) {
            // It was dropped just now, and the stream reports it.
            Err(Failure::Refused { code: NAMESPACE_NOT_FOUND, .. }) => Vec::new(),
            other => other?,
        };
        self.create_indexes(name, &indexes)?;
        self.display.finished(name)?;
        self.take_over(&Changes::default(), |after| {
            if let Some(followed) = after.named(name) {
                followed.reach = CopiedUpTo::All;
            }
        })
    }

    fn create_indexes(&mut self, name: &str, indexes: &[DocumentBuf]) -> Result<(), Failure> {
        for index in indexes.iter().filter(|index| !is_of_id(index)) {
            let of = format!("{name}: index {}", text_of(index.view(), "name"));
            if index.get("expireAfterSeconds").is_some() {
                self.display.left_out(&of, "its time: what expires is deleted by the source");
            }
            if let Some(refused) = self.target.create_index(name, index.view())? {
                self.display.left_out(&of, &refused);
            }
        }
        Ok(())
    }

    /// Takes over what the source reported up to `time`, or up to now.
    fn catch_up(&mut self, time: Option<Timestamp>) -> Result<(), Failure> {
        loop {
            let is_later = |event: &Event| time.is_some_and(|time| event.time.0 > time.0);
            let count = self.events.iter().position(is_later).unwrap_or(self.events.len());
            self.apply(count)?;
            if !self.events.is_empty() || !self.read(NO_WAIT_MILLIS)? {
                return Ok(());
            }
        }
    }

    /// Takes over what comes next; returns whether that is all that was there at the beginning.
    fn follow_some(&mut self) -> Result<bool, Failure> {
        let wait = if self.events.is_empty() { WAIT_MILLIS } else { NO_WAIT_MILLIS };
        let is_end = !self.read(wait)?;
        let last = self.events.back().map(|event| event.time.0);
        let is_of_last = |event: &Event| Some(event.time.0) == last;
        let mut count = self.events.iter().position(is_of_last).unwrap_or(0);
        let held: usize = self.events.range(count..).map(|event| event.bytes).sum();
        let is_held = !is_end && held <= HELD_BYTES;
        if !is_held {
            count = self.events.len();
        }
        self.apply(count)?;
        if self.noted.elapsed() >= NOTED_EVERY && self.events.is_empty() {
            self.take_over(&Changes::default(), |_| ())?;
        }
        self.display.follows(&self.record);
        // What comes next is another transaction's, or there is nothing.
        let next = self.events.front().map(|event| event.time.0);
        let is_between = is_end || next.is_some_and(|next| next != self.reached.0);
        if is_between && self.is_due() {
            self.commit()?;
        }
        Ok(is_end || (is_between && self.source.opened.0 < self.reached.0))
    }

    /// Reads what comes within `millis`; returns whether anything did.
    fn read(&mut self, millis: i64) -> Result<bool, Failure> {
        let (events, place) = self.source.next(millis)?;
        let is_some = !events.is_empty();
        self.events.extend(events);
        if self.events.is_empty() {
            self.place = place;
        }
        Ok(is_some)
    }

    /// Takes over the first `count` events.
    fn apply(&mut self, count: usize) -> Result<(), Failure> {
        let mut changes = Changes::default();
        for _ in 0..count {
            let Some(event) = self.events.pop_front() else { break };
            self.reached = event.time;
            let Kind::Document { .. } = event.kind else {
                self.take_over_counted(&mut changes)?;
                self.alter(&event)?;
                self.place = event.token;
                self.take_over(&Changes::default(), |_| ())?;
                continue;
            };
            let is_concerned = self.is_concerned(&event)?;
            self.place = event.token;
            self.record.wall_millis = event.wall_millis;
            if let (true, Kind::Document { id, change }) = (is_concerned, event.kind) {
                changes.push(&event.collection, id, change, event.bytes);
            }
            let is_enough = changes.bytes >= WRITTEN_BYTES || changes.count() >= WRITTEN_CHANGES;
            let next = self.events.front().map(|event| event.time.0);
            let is_between = next != Some(self.reached.0);
            if (is_enough && is_between) || changes.bytes >= HELD_BYTES {
                self.take_over_counted(&mut changes)?;
            }
        }
        self.take_over_counted(&mut changes)
    }

    /// Whether a change of a document is one of the copy's.
    fn is_concerned(&mut self, event: &Event) -> Result<bool, Failure> {
        let Kind::Document { id, .. } = &event.kind else { return Ok(false) };
        if let Some(followed) = self.record.of(event) {
            return Ok(followed.reach.holds(id.as_value()));
        }
        let name = &event.collection;
        if self.record.named(name).is_none() && !self.left_out.contains(name) {
            // Made without an event, or gone by now: then an event says so.
            let listed = self.source.collections(Some(name))?;
            let is_same = |it: &&Listed| event.uuid.is_none() || it.uuid == event.uuid;
            match listed.iter().find(|it| is_same(it) && it.kind == "collection") {
                Some(listed) if omission_reason(listed).is_none() => {
                    let (name, uuid) = (name.clone(), listed.uuid.clone());
                    self.record.collections.push(Followed {
                        name,
                        uuid,
                        reach: CopiedUpTo::Nothing,
                    });
                }
                _ => drop(self.left_out.insert(name.clone())),
            }
        }
        Ok(false)
    }

    fn take_over_counted(&mut self, changes: &mut Changes) -> Result<(), Failure> {
        let changes = std::mem::take(changes);
        if changes.is_empty() {
            return Ok(());
        }
        let count = i64::try_from(changes.count()).unwrap_or(i64::MAX);
        self.take_over(&changes, |after| {
            after.changes += count;
            after.uncommitted += count;
        })
    }

    /// Writes changes and the record, with the place that is reached.
    fn take_over(
        &mut self,
        changes: &Changes,
        change: impl FnOnce(&mut Record),
    ) -> Result<(), Failure> {
        let mut after = self.record.clone();
        after.token = self.place.clone();
        change(&mut after);
        changes.take_over(&mut self.target, &mut self.record, after)?;
        self.noted = Instant::now();
        Ok(())
    }

    /// Does to the copy what was done to a collection, not to its documents. That may be done
    /// already, if it was cut off before it was noted.
    fn alter(&mut self, event: &Event) -> Result<(), Failure> {
        let name = &event.collection;
        match &event.kind {
            Kind::Create(options) => return self.create(event, options.view()),
            Kind::DropDatabase => {
                for followed in std::mem::take(&mut self.record.collections) {
                    self.target.drop_collection(&followed.name)?;
                }
                self.left_out.clear();
                return Ok(());
            }
            Kind::Other(what) => self.display.left_out(name, &format!("{what} of the source")),
            _ => {}
        }
        let Some(followed) = self.record.of(event) else {
            return self.alter_unknown(event);
        };
        let is_copied = matches!(followed.reach, CopiedUpTo::All);
        match &event.kind {
            Kind::Drop => {
                self.record.forget(name);
                self.target.drop_collection(name)
            }
            Kind::Rename { to, replaces } => {
                let renamed = Followed { name: to.clone(), ..followed.clone() };
                self.record.forget(to);
                self.record.forget(name);
                self.record.collections.push(renamed);
                self.target.rename(name, to, *replaces)
            }
            Kind::CreateIndexes(indexes) if is_copied => self.create_indexes(name, indexes),
            Kind::DropIndexes(names) if is_copied => {
                names.iter().try_for_each(|index| self.target.drop_index(name, index))
            }
            Kind::Modify(what) => {
                if let Some(refused) = self.target.modify(name, what.view())? {
                    self.display.left_out(&format!("{name}: options"), &refused);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A collection that isn't copied took the place of one that is, or is gone: another may have
    /// its name next.
    fn alter_unknown(&mut self, event: &Event) -> Result<(), Failure> {
        match &event.kind {
            Kind::Drop => {
                self.left_out.remove(&event.collection);
                Ok(())
            }
            Kind::Rename { to, replaces: true } if self.left_out.contains(&event.collection) => {
                self.record.forget(to);
                self.left_out.insert(to.clone());
                self.target.drop_collection(to)
            }
            _ => Ok(()),
        }
    }

    fn create(&mut self, event: &Event, options: Document<'_>) -> Result<(), Failure> {
        let (name, uuid) = (event.collection.clone(), event.uuid.clone());
        // One of the name that was listed is this one, or came later.
        if self.record.named(&name).is_some() {
            return Ok(());
        }
        let kind = match (options.get("viewOn"), options.get("timeseries")) {
            (Some(_), _) => "view",
            (None, Some(_)) => "timeseries",
            (None, None) => "collection",
        };
        let made = Listed { name, uuid, options: options.to_buf(), kind: kind.to_owned() };
        if let Some(why) = omission_reason(&made) {
            self.display.left_out(&made.name, why);
            self.left_out.insert(made.name);
            return Ok(());
        }
        self.left_out.remove(&made.name);
        let options = self.with_images(&made)?;
        if let Some(refused) = self.target.create(&made.name, options.view())? {
            self.display.left_out(&format!("{}: options", made.name), &refused);
        }
        if kind == "collection" {
            // All that is in it comes behind this.
            let Listed { name, uuid, .. } = made;
            self.record.collections.push(Followed { name, uuid, reach: CopiedUpTo::All });
        }
        Ok(())
    }

    /// The options of a collection that was made. Whether it keeps documents as they were is
    /// listed: not every source's event says it.
    fn with_images(&mut self, made: &Listed) -> Result<DocumentBuf, Failure> {
        if made.kind != "collection" || made.options.get(IMAGES).is_some() {
            return Ok(made.options.clone());
        }
        let listed = self.source.collections(Some(&made.name))?;
        let images = listed.iter().find(|it| it.uuid == made.uuid);
        let Some(images) = images.and_then(|it| it.options.get(IMAGES)) else {
            return Ok(made.options.clone());
        };
        let mut options = DocumentBuilder::new();
        for (option, value) in made.options.iter() {
            options.append(option, value);
        }
        options.append(IMAGES, images);
        Ok(options.build())
    }

    fn is_due(&self) -> bool {
        let now = now_millis();
        let is_first = self.record.committed_millis == 0;
        self.record.is_whole()
            && (is_first || self.follow.every().iter().any(|it| it.is_due(&self.record, now)))
    }

    /// Records a version.
    fn commit(&mut self) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondCommit", Value::Int32(1));
        let message = self.display.message(&self.record);
        command.append("message", Value::String(&message));
        command.append("author", Value::String(&self.follow.author(self.display.source())));
        if self.record.wall_millis > 0 {
            command.append("time", Value::DateTime(self.record.wall_millis));
        }
        match self.target.run(&command.build()) {
            Ok(answer) => self.display.committed(&answer)?,
            // The last version was recorded just before this began.
            Err(Failure::Refused { code: BAD_VALUE, message, .. })
                if message.starts_with("nothing to commit") => {}
            Err(failure) => return Err(failure),
        }
        // Stored with what changes next.
        self.record.uncommitted = 0;
        self.record.committed_millis = now_millis();
        Ok(())
    }
}

/// Begins a copy: from now on the stream is followed, and what is there now is copied.
fn first_record(
    name: &str,
    source: &mut Source,
    target: &mut Target<'_>,
) -> Result<Record, Failure> {
    let token = source.watch(None)?;
    let listed = source.collections(None)?;
    let there = target.names().or_else(|failure| match failure {
        Failure::Refused { code: NAMESPACE_NOT_FOUND, .. } => Ok(Vec::new()),
        failure => Err(failure),
    })?;
    let mut collections = Vec::new();
    for listed in listed.into_iter().filter(|it| it.kind != "view" && omission_reason(it).is_none())
    {
        if there.contains(&listed.name) {
            let (database, name) = (&target.database, &listed.name);
            return Err(Failure::failed(format!(
                "{database}.{name} is there already, and no copy: name another database with --into"
            )));
        }
        let Listed { name, uuid, .. } = listed;
        collections.push(Followed { name, uuid, reach: CopiedUpTo::Nothing });
    }
    let record = Record::new(name, token, collections);
    target.create(COLLECTION, Document::empty())?;
    target.transact(|writes| Ok(writes.first_record(&record)?))?;
    Ok(record)
}

/// Why a collection isn't copied, if it isn't.
fn omission_reason(listed: &Listed) -> Option<&'static str> {
    if listed.name.starts_with("system.") {
        return Some("the server's own");
    }
    if listed.name == COLLECTION {
        return Some("the source is a copy itself, and that is its record");
    }
    if listed.kind == "timeseries" {
        return Some("a time series");
    }
    let is_capped = listed.options.get("capped").is_some_and(|capped| capped.is_truthy());
    is_capped.then_some("capped: what it evicts isn't reported")
}

/// A batch, as what is to be written.
fn as_changes(name: &str, documents: Vec<DocumentBuf>) -> Result<(Changes, usize), Failure> {
    let mut changes = Changes::default();
    for document in documents {
        let id = document.get("_id").map(|id| id.to_buf());
        let id = id.ok_or_else(|| Failure::failed(format!("{name}: a document has no _id")))?;
        let bytes = document.as_bytes().len();
        changes.push(name, id, Change::Insert(document), bytes);
    }
    let bytes = changes.bytes;
    Ok((changes, bytes))
}

/// Milliseconds since 1970.
fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
