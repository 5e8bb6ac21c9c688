//! Every stage, supported or refused by name, in the order of their names.
//!
//! A stage of MongoDB's that Frond doesn't have is refused as an unknown one is: with 40324, and a
//! message that says so; one of a search server as by a MongoDB without one: with 31082.

use super::parse::{Row, Support};
use super::{
    bucket, bucket_auto, count, densify, documents, facet, fill, geo_near_parse, graph_lookup,
    group, limit, lookup, matching, merge_parse, out, project, redact, replace_root, sample,
    set_window_fields, skip, sort, sort_by_count, union_with, unwind,
};
use crate::feature::{Feature, SupportLevel};

/// The message about the stages that search.
const NO_SEARCH: &str = "Using $search and $vectorSearch aggregation stages requires additional \
                         configuration. Please connect to Atlas or an AtlasCLI local deployment to \
                         enable. For more information on how to connect, see \
                         https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.";
/// The message about the indexes by which they search.
pub const NO_SEARCH_INDEXES: &str = "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires \
     additional configuration. Please connect to Atlas or an AtlasCLI local deployment to enable. \
     For more information on how to connect, see \
     https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.";

/// Finds a stage by its name.
pub(super) fn find(name: &str) -> Option<&'static Row> {
    let position = STAGES.binary_search_by(|row| row.name.cmp(name)).ok()?;
    STAGES.get(position)
}

const fn row(name: &'static str, support: Support) -> Row {
    Row { name, support }
}

use Support::{Elsewhere as E, Parsed as P, Refused as R, Search as S};

#[rustfmt::skip]
static STAGES: &[Row] = &[
    row("$addFields", P(project::add_fields)),
    row("$bucket", P(bucket::parse)),
    row("$bucketAuto", P(bucket_auto::parse)),
    row("$changeStream", R),
    row("$changeStreamSplitLargeEvent", R),
    row("$collStats", R),
    row("$count", P(count::parse)),
    row("$currentOp", R),
    row("$densify", P(densify::parse)),
    row("$documents", P(documents::parse)),
    row("$facet", P(facet::parse)),
    row("$fill", P(fill::parse)),
    row("$geoNear", P(geo_near_parse::parse)),
    row("$graphLookup", P(graph_lookup::parse)),
    row("$group", P(group::parse)),
    row("$indexStats", R),
    row("$limit", P(limit::parse)),
    row("$listLocalSessions", R),
    row("$listSampledQueries", E),
    row("$listSearchIndexes", S(NO_SEARCH_INDEXES)),
    row("$listSessions", R),
    row("$lookup", P(lookup::parse)),
    row("$match", P(|argument, parser| Ok(vec![matching::parse(argument, parser)?]))),
    row("$merge", P(merge_parse::parse)),
    row("$out", P(out::parse)),
    row("$planCacheStats", R),
    row("$project", P(project::project)),
    row("$queryStats", E),
    row("$redact", P(redact::parse)),
    row("$replaceRoot", P(replace_root::replace_root)),
    row("$replaceWith", P(replace_root::replace_with)),
    row("$sample", P(sample::parse)),
    row("$search", S(NO_SEARCH)),
    row("$searchMeta", S(NO_SEARCH)),
    row("$set", P(project::set)),
    row("$setWindowFields", P(set_window_fields::parse)),
    row("$shardedDataDistribution", E),
    row("$skip", P(skip::parse)),
    row("$sort", P(sort::parse)),
    row("$sortByCount", P(sort_by_count::parse)),
    row("$unionWith", P(union_with::parse)),
    row("$unset", P(project::unset)),
    row("$unwind", P(unwind::parse)),
    row("$vectorSearch", S(NO_SEARCH)),
];

/// Returns every stage, for the list of what works. Those that the server answers itself are
/// refused here.
pub(crate) fn features() -> impl Iterator<Item = Feature> {
    STAGES.iter().map(|row| match row.support {
        Support::Parsed(_) => Feature::works(row.name),
        Support::Refused => Feature::new(row.name, SupportLevel::Refused("40324")),
        Support::Elsewhere => Feature::new(row.name, SupportLevel::Elsewhere("40324")),
        Support::Search(_) => Feature::new(row.name, SupportLevel::Elsewhere("31082")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ascend_so_that_they_can_be_searched() {
        for pair in STAGES.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
    }
}
