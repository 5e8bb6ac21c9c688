//! How MongoDB compares values and documents: across types, across number types.

use std::cmp::Ordering;

use crate::document::Document;
use crate::value::Value;

/// Compares two values as MongoDB sorts them: first by the order of their types (MinKey; undefined
/// and null; numbers; strings and symbols; documents; arrays; binary; ObjectId; boolean; date;
/// timestamp; regex; DBPointer; code; code with scope; MaxKey), then by value. Numbers of all
/// four types compare exactly by mathematical value; NaN equals NaN and is the least number.
pub fn compare(_left: Value<'_>, _right: Value<'_>) -> Ordering {
    todo!()
}

/// Compares two documents field by field: type order, then name, then value.
pub fn compare_documents(_left: Document<'_>, _right: Document<'_>) -> Ordering {
    todo!()
}

/// Whether two values are equal to a query: `compare` says `Equal`.
pub fn equal(left: Value<'_>, right: Value<'_>) -> bool {
    compare(left, right) == Ordering::Equal
}
