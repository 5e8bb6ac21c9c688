//! One database of a backup, or one collection, into a data directory that may hold others.

use std::path::Path;

use frond_db::inside::refs::{self, repositories};
use frond_db::inside::{
    CatalogView, DatabaseName, Error, Frond, FrondOptions, Reader, VersionName, open_machine,
};
use frond_query::Code;
use frond_store::io::Machine;

use crate::remote::PlainRemote;
use crate::repository::Repository;
use crate::salvage::source::Source;
use crate::salvage::{LEFT_DIRECTORY, SalvageReport, save_database, working};

/// The part of a backup to restore.
#[derive(Clone, Debug)]
pub struct PartRequest {
    /// The backup; default: the last.
    pub backup: Option<String>,
    /// The database: all its branches, tags and commits; or `database@branch` with a collection.
    pub database: String,
    /// One collection's documents and indexes, as the branch had them, without history: into the
    /// default branch, whatever branch they come from, since a branch begins at a commit.
    pub collection: Option<String>,
}

/// Restores a part of a backup of `place` into `directory`, which is made where it is missing.
///
/// # Errors
/// `NamespaceNotFound` if there is no such backup, database or collection; `NamespaceExists` if the
/// directory has it already. Parts that can't be read are in the report.
pub fn restore_part(
    place: PlainRemote,
    request: &PartRequest,
    directory: &Path,
) -> Result<SalvageReport, Error> {
    let target = crate::open::open(directory, FrondOptions::default())?;
    let left = directory.join(LEFT_DIRECTORY);
    remove_directory(&left)?;
    let done = restore_on(place, request, &open_machine(&left)?, &target);
    let closed = target.close();
    let _ = std::fs::remove_dir_all(&left);
    let report = done?;
    closed?;
    Ok(report)
}

/// Removes what a restore left that was killed: it would be taken for this one's.
fn remove_directory(left: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(left) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let message = format!("{} can't be removed: {error}", left.display());
            Err(Error::unavailable(message))
        }
        _ => Ok(()),
    }
}

/// As [`restore_part`], into `target`; what is brought lies on the disk of `left` meanwhile.
pub(super) fn restore_on(
    place: PlainRemote,
    request: &PartRequest,
    left: &Machine,
    target: &Frond,
) -> Result<SalvageReport, Error> {
    let backup = place.backup(request.backup.as_deref())?;
    let wanted = DatabaseName::parse(&request.database)?;
    if !backup.databases.contains(&wanted.name) {
        let message = format!(
            "backup {} has no database {}: it has {}",
            backup.name,
            wanted.name,
            backup.databases.join(", ")
        );
        return Err(Error::invalid(Code::NamespaceNotFound, message));
    }
    let source = Source::open_backup(place, &backup, left)?;
    let mut report = SalvageReport::default();
    match &request.collection {
        Some(collection) => {
            let into = DatabaseName { version: VersionName::Default, ..wanted.clone() };
            let from = Repository::resolve(&source.frond, wanted)?;
            let to = Repository::resolve(target, into)?;
            restore_collection(&source, &from, &to, collection, &mut report)?;
        }
        None => restore_database(&source, target, &wanted, &mut report)?,
    }
    Ok(report)
}

fn restore_database(
    source: &Source,
    target: &Frond,
    wanted: &DatabaseName,
    report: &mut SalvageReport,
) -> Result<(), Error> {
    if wanted.version != VersionName::Default {
        let message = "a database is restored with all its branches: name it without one";
        return Err(Error::bad_value(message));
    }
    let name = &wanted.name;
    if refs::repository(&Reader::now(target.engine()), name)?.is_some() {
        let message = format!("the directory has a database {name}: restore into another one");
        return Err(Error::invalid(Code::NamespaceExists, message));
    }
    let all = repositories(&source.reader())?;
    let found = all.into_iter().find(|(found, _)| found == name);
    let (_, repository) = found.ok_or_else(|| refs::missing(name))?;
    save_database(source, target, (name, &repository), &[], report)
}

fn restore_collection(
    source: &Source,
    from: &Repository,
    to: &Repository,
    collection: &str,
    report: &mut SalvageReport,
) -> Result<(), Error> {
    let reader = source.reader();
    let found = CatalogView::open(&reader, from)?.collection(collection)?;
    let found = found.ok_or_else(|| {
        let message = format!("the backup has no collection {}", from.namespace(collection));
        Error::invalid(Code::NamespaceNotFound, message)
    })?;
    let there = to.reader();
    if CatalogView::open(&there, to)?.collection(collection)?.is_some() {
        let namespace = to.namespace(collection);
        let message =
            format!("the directory has a collection {namespace}: restore into another one");
        return Err(Error::invalid(Code::NamespaceExists, message));
    }
    let database = to.name().to_string();
    let to: Repository = to.without_validation().into();
    report.collections.push(working::save_as(source, &found, &to, database, collection)?);
    Ok(())
}
