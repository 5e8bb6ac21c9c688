//! The parts of a request, parsed: its variables, filter, projection and collation.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, ValueBuf};
use frond_query::expression::Variables;
use frond_query::large::Large;
use frond_query::memory::RequestMemory;
use frond_query::metadata::MetadataKind;
use frond_query::{Code, Collation, Filter, Projection, SortPattern};

use crate::collection::FindRequest;
use crate::collection::plan::Order;
use crate::collection::stored_functions::prepare_scripts;
use crate::database::Database;
use crate::error::Error;
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::schema::Collection;

/// Evaluates a command's `let`, and notes the time for `$$NOW`.
///
/// Values that the command evaluates are charged to one reservation, and evaluation stops when
/// `interrupt` says so.
///
/// # Errors
/// MongoDB's codes for a name that no variable can have, and for what an expression fails with.
pub fn parse_variables(
    frond: &Frond,
    variables: Option<&DocumentBuf>,
    interrupt: &Interrupt,
) -> Result<Variables, Error> {
    variables_of_user(frond, None, variables, interrupt)
}

/// As [`parse_variables`], for a request on `database`, which knows the user's roles.
///
/// # Errors
/// As [`parse_variables`].
pub(crate) fn variables_in(
    database: &Database,
    variables: Option<&DocumentBuf>,
    interrupt: &Interrupt,
) -> Result<Variables, Error> {
    variables_of_user(database.frond(), database.user_roles(), variables, interrupt)
}

fn variables_of_user(
    frond: &Frond,
    user_roles: Option<&ValueBuf>,
    variables: Option<&DocumentBuf>,
    interrupt: &Interrupt,
) -> Result<Variables, Error> {
    let variables = variables.map(DocumentBuf::view);
    let interrupt = interrupt.clone();
    let go_on = move || interrupt.check().map_err(|error| error.as_query());
    let memory = RequestMemory::new(frond.request_reservation(), Some(Arc::new(go_on)));
    let memory = if frond.runs_scripts() { memory } else { memory.without_scripts() };
    let (now, time) = (frond.now_millis(), frond.operation_time());
    Ok(Variables::in_cluster(now, time, memory, user_roles, variables)?)
}

/// Parses the filter of a search in the collection `found`, and evaluates the variables that it
/// sees. They know how strings compare, and `large`, which reads what documents hold references to.
pub(crate) fn parse_request(
    database: &Database,
    request: &FindRequest,
    found: Option<&Collection>,
    large: &Large,
) -> Result<(Filter, Variables), Error> {
    let collation = collation_of(request.collation.as_ref(), found)?;
    let variables = variables_in(database, request.variables.as_ref(), &request.interrupt)?;
    let variables = variables.with_collation(collation).with_large(large.clone());
    let filter = parse_filter(request.filter.as_ref().map(DocumentBuf::view), &variables)?;
    prepare_scripts(database, &filter)?;
    filter.compute_constants()?;
    Ok((filter, variables))
}

/// Parses a filter (`None`: everything passes), which sees `variables`; its scripts aren't checked.
pub(crate) fn parse_filter(
    filter: Option<Document<'_>>,
    variables: &Variables,
) -> Result<Filter, Error> {
    let filter = match filter.filter(|filter| !filter.is_empty()) {
        Some(filter) => {
            variables.memory().hold_parsed(filter.as_bytes().len())?;
            Filter::parse_search(filter)?
        }
        None => Filter::all(),
    };
    Ok(filter.with_variables(variables.clone()))
}

/// Parses a projection of what a search has found; `None` if documents go through unchanged.
pub(crate) fn parse_searched(
    projection: Option<Document<'_>>,
    variables: Variables,
) -> Result<Option<Projection>, Error> {
    let Some(projection) = projection.filter(|projection| !projection.is_empty()) else {
        return Ok(None);
    };
    let projection = Projection::parse_search(projection)?;
    let variables = match projection.metadata().is_empty() {
        true => variables,
        false => variables.with_metadata(),
    };
    let projection = projection.with_variables(variables);
    Ok(Some(projection).filter(|projection| !projection.is_identity()))
}

/// The filter, which knows what of the search is sorted by and shown.
pub(crate) fn with_metadata(
    filter: Filter,
    order: &Order,
    projection: Option<&Projection>,
) -> Result<Filter, Error> {
    let mut metadata = projection.map(Projection::metadata).unwrap_or_default();
    metadata = metadata.union(order.pattern().map(SortPattern::metadata).unwrap_or_default());
    for (kind, is_there) in [
        (MetadataKind::TextScore, filter.text().is_some()),
        (MetadataKind::GeoNearDistance, filter.near().is_some()),
        (MetadataKind::GeoNearPoint, filter.near().is_some()),
    ] {
        if metadata.contains(kind) && !is_there {
            return Err(kind.unavailable().into());
        }
    }
    if metadata.contains(MetadataKind::SortKey) && order.pattern().is_none() {
        let message = "cannot use sortKey $meta projection without a sort";
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok(filter.with_metadata(metadata.of_search()))
}

/// Returns how strings compare in a request that asks for `wanted` of a collection.
pub(crate) fn collation_of(
    wanted: Option<&Collation>,
    collection: Option<&Collection>,
) -> Result<Collation, Error> {
    match (wanted, collection) {
        (Some(wanted), _) => Ok(wanted.clone()),
        (None, Some(collection)) => collection.collation(),
        (None, None) => Ok(Collation::SIMPLE),
    }
}
