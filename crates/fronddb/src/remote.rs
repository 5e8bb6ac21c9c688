//! The same database elsewhere: clone, fetch, pull and push move what the other side lacks.

use std::path::{Path, PathBuf};

use frond_vcs::remote::{Depth, FetchReport, PushReport, PushRequest, Remote as Place, RemoteInfo};

use crate::{Database, Error, Frond, Merge, MergeOptions, Result};

/// The access to a running server. It isn't used for other remotes.
#[derive(Clone, Default)]
pub struct Access {
    /// Our credentials.
    pub token: Option<String>,
    /// A file of certificates (PEM) to trust beside the system's.
    pub certificates: Option<PathBuf>,
}

/// The options of a clone.
#[derive(Clone, Debug, Default)]
pub struct CloneOptions {
    /// Bring the last so many commits of each branch only.
    pub depth: Option<u64>,
    /// The access to the other side.
    pub access: Access,
}

/// The options of a fetch.
#[derive(Clone, Debug, Default)]
pub struct FetchOptions {
    /// The depth to which history is brought; by default to the commits that are here.
    pub depth: Depth,
    /// The access to the other side.
    pub access: Access,
}

/// The options of a pull.
#[derive(Clone, Debug, Default)]
pub struct PullOptions {
    /// The branch there; `None`: the one of the same name.
    pub branch: Option<String>,
    /// The options of merging it.
    pub merge: MergeOptions,
    /// The access to the other side.
    pub access: Access,
}

/// The options of a push.
#[derive(Clone, Debug, Default)]
pub struct PushOptions {
    /// The branch there; `None`: the one of the same name.
    pub branch: Option<String>,
    /// Move it though commits there are lost, if it is where it was last seen.
    pub force_with_lease: bool,
    /// Send tags, too.
    pub tags: bool,
    /// The access to the other side.
    pub access: Access,
}

impl Frond {
    /// Makes the database `name` a copy of the one at `place`, with its history. The place is its
    /// remote `origin` from then on.
    ///
    /// A place is a directory that was pushed to, another data directory (`/data` or `/data#shop`),
    /// and, with this crate's feature `network`, a running server (`https://host:port/shop`) or a
    /// bucket (`s3://bucket/shop`, `az://container/shop`, `gs://bucket/shop`).
    ///
    /// ```
    /// use fronddb::{Document, Merge, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let place = |name| data.path().join(name);
    /// # let [mine, yours, shared] = ["mine", "yours", "shared"].map(place);
    ///
    /// let shop = fronddb::open(&mine)?.database("shop")?;
    /// shop.collection::<Document>("items").insert_one(doc! { "_id": 1 })?;
    /// shop.commit("first items")?;
    /// shop.add_remote("origin", &shared)?;
    /// shop.push("origin")?;
    ///
    /// let copy = fronddb::open(&yours)?.clone_database(&shared, "shop")?;
    /// copy.collection::<Document>("items").insert_one(doc! { "_id": 2 })?;
    /// copy.commit("second item")?;
    /// copy.push("origin")?;
    ///
    /// assert!(matches!(shop.pull("origin")?, Merge::Merged(_)));
    /// assert_eq!(shop.collection::<Document>("items").count(doc! {})?, 2);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NamespaceExists` if there is a database `name`; `NamespaceNotFound` if there is none at the
    /// place.
    pub fn clone_database(&self, place: impl AsRef<Path>, name: &str) -> Result<Database> {
        self.clone_database_with(place, name, CloneOptions::default())
    }

    /// As [`Frond::clone_database`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn clone_database_with(
        &self,
        place: impl AsRef<Path>,
        name: &str,
        options: CloneOptions,
    ) -> Result<Database> {
        let url = absolute(place.as_ref())?;
        let database = frond_vcs::Repository::open(&self.inner, name)?;
        let remote = open(&url, &database, &options.access, Purpose::Reading)?;
        let depth = options.depth.map_or(Depth::Known, Depth::Commits);
        database.clone_to(&url, &*remote, depth, &mut |_| {})?;
        self.database(name)
    }
}

impl Database {
    /// Gives another place of this database a name; see [`Frond::clone_database`] for what may be a
    /// place.
    ///
    /// # Errors
    /// `NamespaceExists` if there is such a remote; `NamespaceNotFound` if the database doesn't
    /// exist yet.
    pub fn add_remote(&self, name: &str, place: impl AsRef<Path>) -> Result<()> {
        Ok(self.inner.add_remote(name, &absolute(place.as_ref())?)?)
    }

    /// The remotes, by name.
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn list_remotes(&self) -> Result<Vec<RemoteInfo>> {
        Ok(self.inner.list_remotes()?)
    }

    /// Forgets a remote, and where its branches were.
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such remote.
    pub fn remove_remote(&self, name: &str) -> Result<()> {
        Ok(self.inner.remove_remote(name)?)
    }

    /// Brings what a remote has. No branch of this database moves: `origin/main` names the remote's
    /// from then on, in [`Database::diff`] and [`Database::merge`].
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such remote; `IllegalOperation` if that is a database of another
    /// origin; what the other side says.
    pub fn fetch(&self, remote: &str) -> Result<FetchReport> {
        self.fetch_with(remote, FetchOptions::default())
    }

    /// As [`Database::fetch`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn fetch_with(&self, remote: &str, options: FetchOptions) -> Result<FetchReport> {
        let place = self.open_remote(remote, &options.access, Purpose::Reading)?;
        Ok(self.inner.fetch_to(remote, &*place, options.depth, &mut |_| {})?)
    }

    /// Fetches, and merges the remote's branch of this name into this one.
    ///
    /// # Errors
    /// As [`Database::fetch`] and [`Database::merge`].
    pub fn pull(&self, remote: &str) -> Result<Merge> {
        self.pull_with(remote, PullOptions::default())
    }

    /// As [`Database::pull`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn pull_with(&self, remote: &str, options: PullOptions) -> Result<Merge> {
        let place = self.open_remote(remote, &options.access, Purpose::Reading)?;
        let request = options.merge.request(self, String::new());
        let branch = options.branch.as_deref();
        let (_, outcome) = self.inner.pull(remote, &*place, branch, request, &mut |_| {})?;
        Ok(self.merged(outcome))
    }

    /// Sends this branch's commits to a remote and moves its branch there.
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such remote; `BadValue` if there is no commit; `IllegalOperation`
    /// if the branch there has commits that this one lacks: pull first.
    pub fn push(&self, remote: &str) -> Result<PushReport> {
        self.push_with(remote, PushOptions::default())
    }

    /// As [`Database::push`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn push_with(&self, remote: &str, options: PushOptions) -> Result<PushReport> {
        let PushOptions { branch, force_with_lease, tags, access } = options;
        let place = self.open_remote(remote, &access, Purpose::Writing)?;
        let request = PushRequest { branch, force_with_lease, tags };
        Ok(self.inner.push(remote, &*place, &request, &mut |_| {})?)
    }

    fn open_remote(&self, name: &str, access: &Access, to: Purpose) -> Result<Box<dyn Place>> {
        open(&self.inner.remote_url(name)?, &self.inner, access, to)
    }
}

/// The purpose for which a place is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Reading,
    Writing,
}

fn open(
    url: &str,
    database: &frond_vcs::Repository,
    access: &Access,
    to: Purpose,
) -> Result<Box<dyn Place>> {
    let directory = url.split('#').next().unwrap_or_default();
    // Opening it to write would make it.
    if to == Purpose::Reading && !is_elsewhere(url) && !Path::new(directory).is_dir() {
        return Err(frond_db::Error::bad_value(format!("there is no directory {directory}")).into());
    }
    open_any(url, &database.name().name, access)
}

#[cfg(feature = "network")]
fn open_any(url: &str, database: &str, access: &Access) -> Result<Box<dyn Place>> {
    let options = frond_remote::HttpOptions {
        token: access.token.clone(),
        authorities: access.certificates.clone(),
        ..frond_remote::HttpOptions::default()
    };
    Ok(frond_remote::open(url, database, &options)?)
}

#[cfg(not(feature = "network"))]
fn open_any(url: &str, database: &str, _: &Access) -> Result<Box<dyn Place>> {
    if is_elsewhere(url) {
        let message = format!("{url}: fronddb was built without its feature `network`");
        return Err(frond_db::Error::bad_value(message).into());
    }
    Ok(frond_vcs::remote::open(url, database)?)
}

/// Whether it is at another machine, perhaps.
fn is_elsewhere(url: &str) -> bool {
    url.contains("://")
}

/// The place as it is remembered: wherever the process is started the next time.
fn absolute(place: &Path) -> Result<String> {
    let url = place.to_str().ok_or_else(|| {
        let message = format!("the place {} is not UTF-8", place.display());
        Error::from(frond_db::Error::bad_value(message))
    })?;
    if is_elsewhere(url) {
        return Ok(url.to_owned());
    }
    let (directory, database) = match url.rsplit_once('#') {
        Some((directory, database)) => (directory, Some(database)),
        None => (url, None),
    };
    let directory = std::path::absolute(directory)?.display().to_string();
    Ok(match database {
        Some(database) => format!("{directory}#{database}"),
        None => directory,
    })
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_token = self.token.is_some();
        let certificates = &self.certificates;
        f.debug_struct("Access")
            .field("has_token", &has_token)
            .field("certificates", certificates)
            .finish()
    }
}
