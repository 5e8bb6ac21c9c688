//! Push: a branch's commits go to a remote, and its branch of that name moves there.
//!
//! The remote's branch must be an ancestor of what is pushed, so that no commits are lost. *Force
//! with lease* lifts that only if the branch is still where this directory saw it last: what
//! another client pushed meanwhile is not thrown away unseen. Chunks that were sent before a cut
//! stay there.

use std::collections::HashSet;
use std::sync::Arc;

use frond_db::inside::refs::{self, erased, format, shallow};
use frond_db::inside::{
    Commit, CommitId, Error, ErrorKind, LatchMode, Outcome, Reader, Scope, system,
};
use frond_engine::{Durability, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, ChunkStore};

use crate::history::base;
use crate::history::walk::Walk;
use crate::refs::tag;
use crate::remote::data::{moved_on, other_lineage};
use crate::remote::mend::mend;
use crate::remote::transfer::{Endpoint, Moved, Transfer};
use crate::remote::{RefUpdate, Remote, RemoteState, StorageDamage};
use crate::repository::Repository;
use crate::{TagInfo, history};

/// The number of attempts at sending all missing chunks before a push is given up.
const ATTEMPTS_MAX: u32 = 3;

/// The branch to push, and the options.
#[derive(Clone, Debug, Default)]
pub struct PushRequest {
    /// The branch there; default: the one that is pushed.
    pub branch: Option<String>,
    /// Move it though commits are lost, if it is where it was last seen.
    pub force_with_lease: bool,
    /// Send tags, too, that name commits which are sent or there.
    pub tags: bool,
}

/// The result of a push.
#[derive(Clone, Debug)]
pub struct PushReport {
    /// The branch there.
    pub branch: String,
    /// Its commit before.
    pub from: Option<CommitId>,
    /// Its commit now.
    pub to: CommitId,
    /// Tags that were sent.
    pub tags: Vec<String>,
    /// The counts of moved chunks.
    pub moved: Moved,
    /// The damage found there.
    pub damages: Vec<StorageDamage>,
    /// The number of chunks of that which were put there again.
    pub mended: u64,
}

/// The two ends of a push: chunks go from this directory to a remote.
struct Outwards<'a> {
    remote: &'a dyn Remote,
    store: Arc<dyn ChunkStore>,
}

impl Endpoint for Outwards<'_> {
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        self.remote.has_many(hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.store.get_many(hashes)?)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        self.remote.put_many(chunks)
    }

    fn read_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.store.get_many(hashes)?)
    }
}

/// The parents of `commits` that this shallow clone lacks: the other side must have them.
fn check_absent(
    store: &dyn ChunkStore,
    remote: &dyn Remote,
    commits: &[Chunk],
) -> Result<HashSet<ChunkHash>, Error> {
    let mut absent = Vec::new();
    for chunk in commits {
        absent.extend(shallow::absent(store, &Commit::decode(chunk)?.parents)?);
    }
    if remote.has_many(&absent)?.iter().all(|there| *there) {
        return Ok(absent.into_iter().collect());
    }
    let message = "the remote lacks commits that this shallow clone lacks, too: fetch them first, with \
                   --depth or --unshallow";
    Err(Error::invalid(Code::IllegalOperation, message))
}

impl Repository {
    /// Sends this version's commits to `remote`, called `name`, and moves its branch.
    ///
    /// # Errors
    /// `BadValue` if there is no commit; `IllegalOperation` if the branch there has commits that
    /// this one lacks (or, forced, has moved since it was seen), has changes that are not
    /// committed, or if the repositories are of different origin.
    pub fn push(
        &self,
        name: &str,
        remote: &dyn Remote,
        request: &PushRequest,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<PushReport, Error> {
        let reader = self.reader();
        let repository = refs::repository(&reader, self.repository_name())?;
        let (Some(repository), Some(head)) = (repository, self.head(&reader)?) else {
            return Err(Error::invalid(Code::BadValue, "there is no commit to push"));
        };
        let branch = match (&request.branch, self.branch()) {
            (Some(branch), _) => branch.clone(),
            (None, Some(own)) => own.to_owned(),
            (None, None) => {
                let message = "a version that isn't a branch needs the name of the branch to \
                               push to";
                return Err(Error::invalid(Code::BadValue, message));
            }
        };
        crate::refs::ref_name::check_name(&branch)?;
        let state = remote.state()?;
        if state.as_ref().is_some_and(|state| state.salt != repository.salt) {
            return Err(other_lineage(self.repository_name()));
        }
        let there = state.as_ref().and_then(|state| state.branches.get(&branch)).copied();
        self.check_forward(&reader, name, &branch, there, head, request)?;
        let tags =
            if request.tags { self.tags_to_push(&reader, state.as_ref())? } else { Vec::new() };
        let mut tips = vec![head];
        tips.extend(tags.iter().map(|(_, chunk)| *chunk));
        let commits = self.commits_to_push(&reader, state.as_ref(), &tips)?;
        let update = RefUpdate {
            salt: repository.salt,
            default_branch: repository.default_branch,
            branch: branch.clone(),
            expected: there,
            new: head,
            force: request.force_with_lease,
            commits,
            tags,
        };
        let (moved, mended) = self.send(remote, &update, progress)?;
        self.note_pushed(name, &branch, head)?;
        let tags = update.tags.into_iter().map(|(tag, _)| tag.name).collect();
        let (from, to) = (there.map(format::id_of), format::id_of(head));
        let damages = remote.damages();
        Ok(PushReport { branch, from, to, tags, moved, damages, mended })
    }

    /// Sends the commits of `update` and has the remote change its refs.
    fn send(
        &self,
        remote: &dyn Remote,
        update: &RefUpdate,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<(Moved, u64), Error> {
        let store = self.frond().engine().store().clone();
        let commits: Vec<Chunk> = store.get_many(&update.commits)?;
        let absent = check_absent(&*store, remote, &commits)?;
        let endpoint = Outwards { remote, store };
        let mut sent = Moved::default();
        let is_there = update.expected == Some(update.new) && update.tags.is_empty();
        let (mended, is_complete) = if is_there { (0, true) } else { self.mend(&endpoint)? };
        for attempt in 1.. {
            let mut transfer = Transfer::new(&endpoint, progress);
            transfer.commits(&commits, &absent)?;
            let mut moved = transfer.moved;
            if !is_complete {
                // Chunks that were there before may be damaged, of any commit.
                let (commits, absent) = self.whole_history(&*endpoint.store, update.new)?;
                let mut transfer = Transfer::new(&endpoint, progress);
                transfer.commits(&commits, &absent)?;
                moved.chunks += transfer.moved.chunks;
                moved.bytes += transfer.moved.bytes;
            }
            let (chunks, bytes) = (sent.chunks + moved.chunks, sent.bytes + moved.bytes);
            sent = Moved { chunks, bytes, ..moved };
            if is_there {
                break;
            }
            self.refuse_erased(&commits)?;
            match remote.update(update) {
                // A server that was killed meanwhile lost what it hadn't synced.
                Err(error) if error.kind == ErrorKind::Unavailable && attempt < ATTEMPTS_MAX => {}
                done => {
                    done?;
                    break;
                }
            }
        }
        Ok((sent, mended))
    }

    /// Refuses to have refs name commits that were erased while they were sent.
    fn refuse_erased(&self, commits: &[Chunk]) -> Result<(), Error> {
        let named = commits.iter().map(|chunk| (chunk.hash(), Vec::new()));
        erased::refuse(&self.reader(), self.repository_name(), named)
    }

    /// The commits that lead to `tip`, the oldest first, and the parents that a shallow clone
    /// lacks.
    fn whole_history(
        &self,
        store: &dyn ChunkStore,
        tip: ChunkHash,
    ) -> Result<(Vec<Chunk>, HashSet<ChunkHash>), Error> {
        let commits = self.commits_to_push(&self.reader(), None, &[tip])?;
        let commits = store.get_many(&commits)?;
        let mut absent = HashSet::new();
        for chunk in &commits {
            absent.extend(shallow::absent(store, &Commit::decode(chunk)?.parents)?);
        }
        Ok((commits, absent))
    }

    /// Has the remote look at a share of what it holds, and puts there again what is damaged.
    /// Returns how many chunks, and whether that was all.
    fn mend(&self, endpoint: &Outwards<'_>) -> Result<(u64, bool), Error> {
        endpoint.remote.reread()?;
        let damages = endpoint.remote.damages();
        let mut lost: Vec<ChunkHash> =
            damages.iter().flat_map(|damage| &damage.chunks).copied().collect();
        let there = endpoint.remote.has_many(&lost)?;
        let mut there = there.into_iter();
        lost.retain(|_| there.next() == Some(false));
        let get = |hashes: &[ChunkHash]| endpoint.get_many(hashes);
        let (mended, lost) = mend(&lost, &get, &|chunks| endpoint.put_many(chunks))?;
        let is_complete = lost.is_empty() && !damages.iter().any(|damage| damage.may_hold_more);
        Ok((mended, is_complete))
    }

    fn check_forward(
        &self,
        reader: &Reader<'_>,
        remote: &str,
        branch: &str,
        there: Option<ChunkHash>,
        head: ChunkHash,
        request: &PushRequest,
    ) -> Result<(), Error> {
        let Some(there) = there else { return Ok(()) };
        let name = self.repository_name();
        let seen = tag::tracking(reader, name, Some(remote))?;
        let tracked = format!("{remote}/{branch}");
        let seen = seen.iter().find(|known| known.name == tracked).map(|known| known.commit);
        if request.force_with_lease {
            let is_as_seen = seen == Some(format::id_of(there));
            return if is_as_seen { Ok(()) } else { Err(moved_on(branch)) };
        }
        let is_known = refs::commit_chunk(reader, name, &format::id_of(there))?.is_some();
        let mut load = |hash| history::load(&**reader.store(), hash);
        if is_known && base::is_ancestor(there, head, &mut load)? {
            return Ok(());
        }
        let message = format!(
            "branch {branch} of {remote} has commits that this branch lacks: pull them first, or \
             force with lease"
        );
        Err(Error::invalid(Code::IllegalOperation, message))
    }

    /// Tags that the remote has not.
    fn tags_to_push(
        &self,
        reader: &Reader<'_>,
        state: Option<&RemoteState>,
    ) -> Result<Vec<(TagInfo, ChunkHash)>, Error> {
        let name = self.repository_name();
        let mut tags = Vec::new();
        for tag in tag::of_database(reader, name)? {
            let is_there = state.is_some_and(|state| {
                state.tags.contains_key(&tag.name) || state.branches.contains_key(&tag.name)
            });
            if is_there {
                continue;
            }
            let chunk = refs::commit_chunk(reader, name, &tag.commit)?;
            let chunk = chunk.ok_or_else(|| {
                Error::damaged(format!("the commit of the tag {} is not known", tag.name))
            })?;
            tags.push((tag, chunk));
        }
        Ok(tags)
    }

    /// Commits that the remote lacks, the oldest first.
    fn commits_to_push(
        &self,
        reader: &Reader<'_>,
        state: Option<&RemoteState>,
        tips: &[ChunkHash],
    ) -> Result<Vec<ChunkHash>, Error> {
        let name = self.repository_name();
        let mut there = Vec::new();
        if let Some(state) = state {
            let tags = state.tags.values().map(|(_, chunk)| *chunk);
            for hash in state.branches.values().copied().chain(tags) {
                if refs::commit_chunk(reader, name, &format::id_of(hash))?.is_some() {
                    there.push(hash);
                }
            }
        }
        let mut walk = Walk::begin(reader.store(), tips, &there, false)?;
        let mut commits = Vec::new();
        while let Some((hash, _)) = walk.next()? {
            commits.push(hash);
        }
        commits.reverse();
        Ok(commits)
    }

    fn note_pushed(&self, remote: &str, branch: &str, head: ChunkHash) -> Result<(), Error> {
        let name = self.repository_name();
        let scope = Scope::branch(name, "");
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            transaction.validate(TreeId::SYSTEM, system::repository_key(name));
            let known = {
                let reader = Reader::within(self.frond().engine(), transaction);
                refs::commit_chunk(&reader, name, &format::id_of(head))?
            };
            if known != Some(head) {
                return Ok(Outcome::Discard(())); // Erased meanwhile: it must not be kept.
            }
            let tracked = TagInfo {
                name: format!("{remote}/{branch}"),
                commit: format::id_of(head),
                message: None,
                author: None,
                time_millis: self.frond().time_millis(),
            };
            tracked.put_tracking(transaction, name)?;
            Ok(Outcome::Commit(()))
        })
    }
}
