//! Finding the documents that a statement writes.

use frond_doc::ValueBuf;
use frond_query::{Code, Filter, examined, planner};

use super::CollectionWriter;
use crate::collection::index_filters;
use crate::collection::plan::{self, Access, Hint, MinMaxBounds, Order};
use crate::collection::scan::{self, FetchedDocument, FoundRows, Row, Scan};
use crate::collection::sort::{self, KeyOf};
use crate::error::Error;
use crate::request_profile::{self, Plan};
use crate::schema::Collection;

impl CollectionWriter<'_> {
    /// Finds the documents that pass `filter`, at most `limit`; nothing if there is no collection.
    /// They are all read before the caller changes one, so none is found twice.
    ///
    /// # Errors
    /// `BadValue` (2) for a hint on an index that it hasn't; as the scan and, for a sort, its
    /// memory.
    pub fn matching(
        &self,
        filter: &Filter,
        order: &Order,
        hint: Option<&ValueBuf>,
        limit: Option<usize>,
    ) -> Result<Vec<FetchedDocument>, Error> {
        if let Some(found) = self.by_id(filter, order, hint)? {
            return found.map(|row| self.whole(row)).into_iter().collect();
        }
        let Some((mut scan, in_order)) = self.scan(filter, order, hint, limit)? else {
            return Ok(Vec::new());
        };
        let reservation = || self.database.frond().resources(true).reservation();
        let key_of: Box<KeyOf<'_>> = match (order, filter.distance()) {
            (Order::By(pattern), _) if !in_order => {
                examined::note_sort();
                scan = scan.scored_by_entries(reservation());
                Box::new(|document| pattern.key(document))
            }
            (Order::Any, Some(distance)) => Box::new(move |document| Ok(distance.key(document))),
            _ => {
                let rows = scan.take(limit.unwrap_or(usize::MAX));
                return rows.map(|row| self.whole(row?)).collect();
            }
        };
        let found = scan.map(|row| self.whole(row?));
        sort::sorted(found, &*key_of, limit, reservation())
    }

    /// As [`CollectionWriter::matching`], but large documents are found in part, unless they are
    /// the nearest: with the fields that the filter and the order ask for.
    ///
    /// # Errors
    /// As [`CollectionWriter::matching`].
    pub fn matching_in_part(
        &self,
        filter: &Filter,
        order: &Order,
        hint: Option<&ValueBuf>,
        limit: Option<usize>,
    ) -> Result<Vec<Row>, Error> {
        let is_by_fields = matches!(order, Order::Any | Order::By(_));
        if !is_by_fields || filter.near().is_some() || !filter.metadata().is_empty() {
            let found = self.matching(filter, order, hint, limit)?;
            return Ok(found.into_iter().map(Row::from).collect());
        }
        if let Some(found) = self.by_id(filter, order, hint)? {
            return Ok(found.into_iter().collect());
        }
        let Some((scan, in_order)) = self.scan(filter, order, hint, limit)? else {
            return Ok(Vec::new());
        };
        let Order::By(pattern) = order else {
            let scan = scan.for_update(std::iter::empty());
            return scan.take(limit.unwrap_or(usize::MAX)).collect();
        };
        let outermost = pattern.fields.iter().filter_map(|field| field.path.split('.').next());
        let scan = scan.for_update(outermost.map(str::as_bytes));
        if in_order {
            return scan.take(limit.unwrap_or(usize::MAX)).collect();
        }
        examined::note_sort();
        let reservation = self.database.frond().resources(true).reservation();
        sort::sorted(scan, &|document| pattern.key(document), limit, reservation)
    }

    /// The documents that pass `filter`, large ones in part; `None` if they are more than a part
    /// takes ([`crate::collection::parts`]). In a transaction of several requests they are charged,
    /// and never too many.
    ///
    /// # Errors
    /// As [`CollectionWriter::matching`]; `ExceededMemoryLimit` (146); what interrupts the request.
    pub fn matching_few(
        &self,
        filter: &Filter,
        hint: Option<&ValueBuf>,
    ) -> Result<Option<Vec<Row>>, Error> {
        let Some((scan, _)) = self.scan(filter, &Order::Any, hint, None)? else {
            return Ok(Some(Vec::new()));
        };
        let is_alone = self.database.transaction().is_none();
        let mut reservation = filter.memory().another(usize::MAX);
        let mut found = FoundRows::default();
        for row in scan.for_update(std::iter::empty()).interrupted_by(self.database.interrupt()) {
            found.push(row?);
            if is_alone && found.is_full() {
                return Ok(None);
            }
            reservation.hold(found.bytes()).map_err(|exceeded| {
                let message = format!("the documents that are to be written exceed {exceeded}");
                Error::invalid(Code::ExceededMemoryLimit, message)
            })?;
        }
        Ok(Some(found.rows))
    }

    /// The document of a row that was found at an older snapshot, as it is now; `None` if it is
    /// gone, or doesn't pass `filter` any more.
    ///
    /// # Errors
    /// As [`Reader::get`]; what the filter's expressions fail with.
    pub fn current(&self, row: &Row, filter: &Filter) -> Result<Option<Row>, Error> {
        let Some(documents) = self.documents() else { return Ok(None) };
        let reader = self.reader();
        match reader.get(documents, &row.id_key)? {
            Some(value) if row.is_of(&reader, &value)? => Ok(Some(row.clone())),
            Some(value) => scan::passing(reader, documents, filter, row.id_key.clone(), &value),
            None => Ok(None),
        }
    }

    /// The document with the `_id` that is all that `filter` names, found without a plan or a scan;
    /// the outer `None` if it names more. Large ones are found in part.
    fn by_id(
        &self,
        filter: &Filter,
        order: &Order,
        hint: Option<&ValueBuf>,
    ) -> Result<Option<Option<Row>>, Error> {
        let is_bare = matches!(order, Order::Any) && hint.is_none() && filter.metadata().is_empty();
        let Some(now) = self.now.as_ref().filter(|now| is_bare && now.series.is_none()) else {
            return Ok(None);
        };
        let Some(id_key) = planner::only_id(filter) else { return Ok(None) };
        request_profile::note(|| Plan::ById);
        let reader = self.reader();
        let Some(value) = reader.get(now.documents, &id_key)? else { return Ok(Some(None)) };
        examined::add_counts(1, 1);
        scan::known_to_pass(reader, now.documents, filter, id_key, &value).map(Some)
    }

    /// A scan for documents, and whether it gives them in the order; `None` if there is no
    /// collection.
    fn scan(
        &self,
        filter: &Filter,
        order: &Order,
        hint: Option<&ValueBuf>,
        limit: Option<usize>,
    ) -> Result<Option<(Scan<'_>, bool)>, Error> {
        let Some(now) = &self.now else {
            request_profile::note(|| Plan::Nothing);
            return Ok(None);
        };
        let access = self.access(now, filter, order, hint, limit)?;
        let in_order = access.gives_order;
        Ok(Some((Scan::new(self.reader(), now, access, filter.clone(), order), in_order)))
    }

    /// Returns how these documents are found.
    pub(super) fn access(
        &self,
        now: &Collection,
        filter: &Filter,
        order: &Order,
        hint: Option<&ValueBuf>,
        limit: Option<usize>,
    ) -> Result<Access, Error> {
        let hint = match hint {
            Some(hint) => Hint::parse(hint, now)?,
            None => None,
        };
        let limit = limit.and_then(|limit| u64::try_from(limit).ok());
        let request = plan::Request {
            filter,
            order,
            hint,
            limit,
            skip: 0,
            needs: &None,
            between: MinMaxBounds::default(),
            distinct: None,
            is_by_id: now.series.is_none(),
            allowed: None,
        };
        let allowed = index_filters::allowed(self.database.frond(), now, (filter, order), None);
        let request = request.among(allowed.as_deref());
        match &self.before {
            Some(before) => plan::choose(&self.reader(), before, &self.own, request),
            // A collection that this transaction made itself has no index that is known here.
            None if filter.text().is_some() => Err(plan::no_text_index()),
            None => Ok(Access::everything(request)),
        }
    }
}
