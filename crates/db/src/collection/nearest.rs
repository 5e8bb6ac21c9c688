//! The nearest first, for the first few: an index of places is read outward.
//!
//! 1. The surroundings of the centre are divided into rings, each four times as wide as the one
//!    before ([`Near::rings`]). Each is a search of its own at the same snapshot: its cells are
//!    ranges of the index.
//! 2. The documents found in a ring are measured and sorted; if they are enough, the farther rings
//!    aren't read.
//! 3. A document came at its nearest place: in a farther ring, and on the border between two, it is
//!    passed over.
//!
//! Where much is wanted, or few places are filed, one search for all of them costs less:
//! [`find`] gives `None`, and the caller measures all.

use std::sync::Arc;

use frond_doc::ValueBuf;
use frond_query::Filter;
use frond_tree::Bounds;

use crate::collection::plan::{self, Access, Order, OwnFacts, Source};
use crate::collection::scan::seen::SeenDocuments;
use crate::collection::scan::{FetchedDocument, Scan};
use crate::collection::search::Search;
use crate::collection::sort::sorted;
use crate::database::Database;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::schema::Collection;

/// The number of wanted documents above which one search finds all of them.
const WANTED_MAX: u64 = 100;
/// The number of entries of an index below which all are measured.
const ENTRIES_MIN: u64 = 1_000;

/// The nearest documents, and what finding them took.
pub(crate) struct Nearest {
    /// The nearest first.
    pub found: Vec<FetchedDocument>,
    /// Entries of the index that were read.
    pub keys: u64,
    /// Documents that were read.
    pub documents: u64,
}

/// The first `wanted` documents that pass a filter with a `$near`, as an index gives them that
/// `access` scans for all of them; `None` where that is no worse.
pub(crate) fn find(
    database: &Database,
    reader: &Reader<'static>,
    (collection, access): (&Arc<Collection>, &Access),
    (filter, hint): (&Filter, Option<&ValueBuf>),
    wanted: Option<u64>,
    interrupt: &Interrupt,
) -> Result<Option<Nearest>, Error> {
    let Some(wanted) = wanted.filter(|wanted| (1..=WANTED_MAX).contains(wanted)) else {
        return Ok(None);
    };
    let ([path], Some((_, near)), Some(distance)) =
        (&access.paths[..], filter.near(), filter.distance())
    else {
        return Ok(None);
    };
    let Source::Index(position) = path.source else { return Ok(None) };
    let index = &collection.indexes[position];
    if reader.estimate_range(index.tree, &Bounds::all())? < ENTRIES_MIN {
        return Ok(None);
    }
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let order = Order::Near(distance.clone());
    let mut seen = SeenDocuments::new(filter.memory().another(usize::MAX));
    let mut nearest = Nearest { found: Vec::new(), keys: 0, documents: 0 };
    for ring in index.shape.rings(near) {
        let within = filter.with_near(&ring);
        let search = Search { order: &order, ..Search::of(&within, hint) };
        let request = search.on(collection)?;
        let access = plan::choose(reader, collection, &OwnFacts::default(), request)?;
        let mut scan = Scan::new(reader.clone(), collection, access, within.clone(), &order)
            .interrupted_by(interrupt);
        let mut failed = None;
        let unseen = scan.by_ref().filter(|row| {
            let Ok(row) = row else { return true };
            seen.insert(&row.id_key).unwrap_or_else(|error| {
                failed.get_or_insert(error);
                false
            })
        });
        let unseen = unseen.map(|row| row?.into_whole(reader, collection.documents));
        let keep = wanted - nearest.found.len();
        let reservation = database.frond().resources(true).reservation();
        let key_of = |document: frond_doc::Document<'_>| Ok(distance.key(document));
        nearest.found.extend(sorted(unseen, &key_of, Some(keep), reservation)?);
        if let Some(error) = failed {
            return Err(error);
        }
        for walk in scan.walks() {
            nearest.keys += walk.keys_examined;
            nearest.documents += walk.documents_examined;
        }
        if wanted <= nearest.found.len() {
            break;
        }
    }
    Ok(Some(nearest))
}
