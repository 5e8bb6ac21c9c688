//! Lists the losses of a damaged backup or data directory, by database, branch and collection.

use std::path::Path;

use frond_db::inside::refs::repositories;
use frond_db::inside::{CatalogView, DatabaseName, Error, ErrorKind, VersionName, open_machine};
use frond_store::io::Machine;

use crate::remote::PlainRemote;
use crate::repository::Repository;
use crate::salvage::source::Source;
use crate::salvage::{
    LostPart, SalvageReport, SalvagedCollection, history, unreadable_note, working,
};

/// Reads the documents of every branch's working state, and reports which of the backup `name` of
/// `place` can't be read, and which commits aren't whole. `scratch` is a directory for what an open
/// data directory writes, removed afterwards.
///
/// # Errors
/// `Damaged` if not even its databases can be listed; if the place doesn't answer.
pub fn survey_backup(
    place: PlainRemote,
    name: &str,
    scratch: &Path,
) -> Result<SalvageReport, Error> {
    let done = survey_on(place, name, &open_machine(scratch)?);
    let _ = std::fs::remove_dir_all(scratch);
    done
}

/// As [`survey_backup`], with an empty disk.
pub(crate) fn survey_on(
    place: PlainRemote,
    name: &str,
    left: &Machine,
) -> Result<SalvageReport, Error> {
    let backup = place.backup(Some(name))?;
    survey(&Source::open_backup(place, &backup, left)?)
}

/// As [`survey_backup`], of the data directory on `machine`, which is only read.
pub(crate) fn survey_directory(machine: &Machine) -> Result<SalvageReport, Error> {
    let mut report = SalvageReport::default();
    let source = Source::look_at(machine, &mut report)?;
    let SalvageReport { collections, commits_lost, notes, .. } = survey(&source)?;
    Ok(SalvageReport { collections, commits_lost, notes: [report.notes, notes].concat(), ..report })
}

/// Returns what can't be read of all that `source` has.
fn survey(source: &Source) -> Result<SalvageReport, Error> {
    let mut report = SalvageReport::default();
    let reader = source.reader();
    let repositories = repositories(&reader)?;
    // Also if all of them are lost.
    report
        .notes
        .extend(source.losses().iter().map(|lost| unreadable_note("the list of databases", lost)));
    for (name, repository) in repositories {
        for branch in history::survey(source, &name, &mut report)? {
            let version = VersionName::Named(branch.clone());
            let database = DatabaseName { name: name.clone(), version };
            let from = Repository::resolve(&source.frond, database)?;
            let shown = match branch == repository.default_branch {
                true => name.clone(),
                false => format!("{name}@{branch}"),
            };
            let catalog = CatalogView::open(&reader, &from)?;
            for collection in working::names(source, &catalog, &shown, &mut report)? {
                let mut saved = SalvagedCollection::new(shown.clone(), &collection);
                match catalog.collection(&collection) {
                    Ok(Some(found)) => working::survey(source, &reader, &found, &mut saved)?,
                    Ok(None) => continue,
                    Err(error) if error.kind == ErrorKind::Damaged => {
                        saved.lost.push(LostPart::Whole(error.message));
                    }
                    Err(error) => return Err(error),
                }
                if !saved.lost.is_empty() {
                    report.collections.push(saved);
                }
            }
        }
    }
    Ok(report)
}
