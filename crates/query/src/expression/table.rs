//! Every operator of expressions, in the order of their names.

use super::node::Look;
use super::parse::{Operator, Shape};
use super::{
    arithmetic, array, bits, comparison, conditional, convert, date, hash, iterate, meta, object,
    pairs, rounding, scripted, search, set, several, string, substring, total, trigonometry,
    variable,
};
use crate::feature::Feature;

/// Finds an operator by its name.
pub(super) fn find(name: &str) -> Option<(&'static Operator, Option<Look>)> {
    let position = OPERATORS.binary_search_by(|operator| operator.name.cmp(name)).ok()?;
    Some((OPERATORS.get(position)?, look(name)))
}

/// Returns how much of its arguments an operator looks at that but hands on what it is given;
/// `None` of one that reads them. (Operators with rules of their own know it themselves.)
fn look(name: &str) -> Option<Look> {
    Some(match name {
        "$isArray" | "$isNumber" | "$type" => Look::Type,
        // These read what they want of an array that lies elsewhere.
        "$arrayElemAt" | "$first" | "$last" | "$size" | "$slice" => Look::Type,
        "$bsonSize" | "$concatArrays" | "$objectToArray" | "$reverseArray" => Look::Level,
        "$mergeObjects" => Look::Elements,
        _ => return None,
    })
}

const fn row(name: &'static str, shape: Shape) -> Operator {
    Operator { name, shape }
}

use Shape::{
    Many as M, ManyIn as MI, One as O, OneIn as OI, Special as S, Two as T, TwoCollated as TC,
    TwoIn as TI,
};

const ANY: usize = usize::MAX;

#[rustfmt::skip]
static OPERATORS: &[Operator] = &[
    // Into which a `mapReduce` is translated.
    row("$_internalJsEmit", S(scripted::emit)),
    row("$abs", O(arithmetic::abs)),
    row("$acos", OI(trigonometry::acos)),
    row("$acosh", OI(trigonometry::acosh)),
    row("$add", M(0, ANY, arithmetic::add)),
    row("$allElementsTrue", O(set::all_elements_true)),
    row("$and", S(comparison::and)),
    row("$anyElementTrue", O(set::any_element_true)),
    row("$arrayElemAt", TI(array::element_at)),
    row("$arrayToObject", OI(pairs::array_to_object)),
    row("$asin", OI(trigonometry::asin)),
    row("$asinh", OI(trigonometry::asinh)),
    row("$atan", OI(trigonometry::atan)),
    row("$atan2", TI(trigonometry::atan2)),
    row("$atanh", OI(trigonometry::atanh)),
    row("$avg", S(total::avg)),
    row("$binarySize", O(string::binary_size)),
    row("$bitAnd", M(0, ANY, bits::and)),
    row("$bitNot", O(bits::not)),
    row("$bitOr", M(0, ANY, bits::or)),
    row("$bitXor", M(0, ANY, bits::xor)),
    row("$bsonSize", OI(object::bson_size)),
    row("$ceil", O(rounding::ceil)),
    row("$cmp", TC(comparison::cmp)),
    row("$concat", MI(0, ANY, string::concat)),
    row("$concatArrays", MI(0, ANY, array::concat_arrays)),
    row("$cond", S(conditional::cond)),
    row("$const", S(variable::literal)),
    row("$convert", S(convert::convert)),
    row("$cos", OI(trigonometry::cos)),
    row("$cosh", OI(trigonometry::cosh)),
    row("$dateAdd", S(date::add)),
    row("$dateDiff", S(date::difference)),
    row("$dateFromParts", S(date::from_parts)),
    row("$dateFromString", S(date::date_from_string)),
    row("$dateSubtract", S(date::subtract)),
    row("$dateToParts", S(date::to_parts)),
    row("$dateToString", S(date::date_to_string)),
    row("$dateTrunc", S(date::truncate)),
    row("$dayOfMonth", S(date::part)),
    row("$dayOfWeek", S(date::part)),
    row("$dayOfYear", S(date::part)),
    row("$degreesToRadians", O(trigonometry::degrees_to_radians)),
    row("$divide", T(arithmetic::divide)),
    row("$eq", TC(comparison::eq)),
    row("$exp", OI(arithmetic::exp)),
    row("$expr", S(variable::parentheses)),
    row("$filter", S(iterate::filter)),
    row("$first", OI(array::first)),
    row("$firstN", S(several::first)),
    row("$floor", O(rounding::floor)),
    row("$function", S(scripted::function)),
    row("$getField", S(object::get_field)),
    row("$gt", TC(comparison::gt)),
    row("$gte", TC(comparison::gte)),
    row("$hour", S(date::part)),
    row("$ifNull", S(conditional::if_null)),
    row("$in", TC(array::is_in)),
    row("$indexOfArray", S(array::index_of_array)),
    row("$indexOfBytes", M(2, 4, substring::index_of_bytes)),
    row("$indexOfCP", M(2, 4, substring::index_of_code_points)),
    row("$isArray", O(array::is_array)),
    row("$isNumber", O(convert::is_number)),
    row("$isoDayOfWeek", S(date::part)),
    row("$isoWeek", S(date::part)),
    row("$isoWeekYear", S(date::part)),
    row("$last", OI(array::last)),
    row("$lastN", S(several::last)),
    row("$let", S(variable::let_in)),
    row("$literal", S(variable::literal)),
    row("$ln", OI(arithmetic::ln)),
    row("$log", TI(arithmetic::log)),
    row("$log10", OI(arithmetic::log10)),
    row("$lt", TC(comparison::lt)),
    row("$lte", TC(comparison::lte)),
    row("$ltrim", S(string::trim)),
    row("$map", S(iterate::map)),
    row("$max", S(total::max)),
    row("$maxN", S(several::max)),
    row("$median", S(several::percentile)),
    row("$mergeObjects", MI(0, ANY, object::merge_objects)),
    row("$meta", S(meta::parse)),
    row("$millisecond", S(date::part)),
    row("$min", S(total::min)),
    row("$minN", S(several::min)),
    row("$minute", S(date::part)),
    row("$mod", T(arithmetic::modulo)),
    row("$month", S(date::part)),
    row("$multiply", M(0, ANY, arithmetic::multiply)),
    row("$ne", TC(comparison::ne)),
    row("$not", O(comparison::not)),
    row("$objectToArray", OI(pairs::object_to_array)),
    row("$or", S(comparison::or)),
    row("$percentile", S(several::percentile)),
    row("$pow", TI(arithmetic::pow)),
    row("$radiansToDegrees", O(trigonometry::radians_to_degrees)),
    row("$rand", S(variable::rand)),
    row("$range", MI(2, 3, array::range)),
    row("$reduce", S(iterate::reduce)),
    row("$regexFind", S(search::find)),
    row("$regexFindAll", S(search::find_all)),
    row("$regexMatch", S(search::matches)),
    row("$replaceAll", S(string::replace)),
    row("$replaceOne", S(string::replace)),
    row("$reverseArray", OI(array::reverse)),
    row("$round", M(1, 2, rounding::round)),
    row("$rtrim", S(string::trim)),
    row("$second", S(date::part)),
    row("$setDifference", TI(set::difference)),
    row("$setEquals", S(set::equals)),
    row("$setField", S(object::set_field)),
    row("$setIntersection", MI(0, ANY, set::intersection)),
    row("$setIsSubset", S(set::is_subset)),
    row("$setUnion", MI(0, ANY, set::union)),
    row("$sin", OI(trigonometry::sin)),
    row("$sinh", OI(trigonometry::sinh)),
    row("$size", OI(array::size)),
    row("$slice", MI(2, 3, array::slice)),
    row("$sortArray", S(iterate::sort_array)),
    row("$split", TI(string::split)),
    row("$sqrt", OI(arithmetic::sqrt)),
    row("$stdDevPop", S(total::std_dev_pop)),
    row("$stdDevSamp", S(total::std_dev_samp)),
    row("$strLenBytes", O(string::length_bytes)),
    row("$strLenCP", O(string::length_code_points)),
    row("$strcasecmp", TI(string::compare_ignoring_case)),
    row("$substr", MI(3, 3, substring::of_bytes)),
    row("$substrBytes", MI(3, 3, substring::of_bytes)),
    row("$substrCP", MI(3, 3, substring::of_code_points)),
    row("$subtract", T(arithmetic::subtract)),
    row("$sum", S(total::sum)),
    row("$switch", S(conditional::switch)),
    row("$tan", OI(trigonometry::tan)),
    row("$tanh", OI(trigonometry::tanh)),
    row("$toBool", S(convert::to_bool)),
    row("$toDate", S(convert::to_date)),
    row("$toDecimal", S(convert::to_decimal)),
    row("$toDouble", S(convert::to_double)),
    row("$toHashedIndexKey", S(hash::to_hashed_index_key)),
    row("$toInt", S(convert::to_int)),
    row("$toLong", S(convert::to_long)),
    row("$toLower", OI(string::to_lower)),
    row("$toObjectId", S(convert::to_object_id)),
    row("$toString", S(convert::to_string)),
    row("$toUUID", S(convert::to_uuid)),
    row("$toUpper", OI(string::to_upper)),
    row("$trim", S(string::trim)),
    row("$trunc", M(1, 2, rounding::trunc)),
    row("$tsIncrement", O(date::increment)),
    row("$tsSecond", O(date::second)),
    row("$type", O(convert::type_of)),
    row("$unsetField", S(object::unset_field)),
    row("$week", S(date::part)),
    row("$year", S(date::part)),
    row("$zip", S(pairs::zip)),
];

/// Whether there is an operator of this name, documented or not.
pub(crate) fn is_operator(name: &str) -> bool {
    find(name).is_some()
}

/// Returns every operator of expressions, for the list of what works.
pub(crate) fn features() -> impl Iterator<Item = Feature> {
    let documented = OPERATORS.iter().filter(|row| !row.name.starts_with("$_"));
    documented.map(|row| Feature::works(row.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ascend_so_that_they_can_be_searched() {
        for pair in OPERATORS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
    }
}
