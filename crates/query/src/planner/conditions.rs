//! The demands of a filter on one path, as intervals of an index's keys.
//!
//! A condition that is not understood demands nothing, so that intervals are never too narrow. A
//! demand is *exact* if a document without arrays on the path passes whenever its key lies within:
//! then keys can be counted instead of documents, and the opposite of the condition has intervals
//! too.

use frond_doc::{Value, ValueBuf};

use super::defect::{Defect, is_planted};
use super::interval::{Cut, Interval, Intervals};
use crate::collation::{Collation, holds_string};
use crate::expression::{Expression, KnownComparison, hashed_key};
use crate::filter::tree::{Condition, Node, Test};
use crate::filter::{Comparison, Membership, Pattern, Relation};

/// The bounds that a filter implies for a path.
#[derive(Clone, Debug)]
pub(super) struct PathBounds {
    /// One of the document's keys for the path lies in them.
    pub(super) intervals: Intervals,
    /// Whether something must be there, so that a sparse index has the document.
    pub(super) is_present: bool,
    /// Whether a document with one value at the path passes if its key lies in the intervals.
    pub(super) is_exact: bool,
}

/// The properties of an index's path by which conditions on it are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'i> {
    /// The number of values that a document may have at the path: two demands combine by it.
    pub(super) path_values: PathValues,
    /// Whether a part of the path is a number. `a.0` of `{a: [{}]}` is a document to the index; to
    /// a query it is also absent, since the element has no field `0`. So conditions that an absent
    /// value fulfils give no intervals.
    pub(super) has_number: bool,
    /// Whether the path has one part only, so that it reaches something in every document: then a
    /// value that isn't null is a value. `a.b` reaches nothing at all in `{a: [1]}`.
    pub(super) is_top_level: bool,
    /// Whether the index files hashes.
    pub(super) is_hashed: bool,
    /// Whether the conditions are on an element of an array. If that is an array itself it is filed
    /// as a whole, so that nothing is known of its own elements.
    pub(super) is_element: bool,
    /// Whether an element of an array has one value at what is left of the path, in all documents.
    pub(super) has_single_elements: bool,
    /// The collation by which the index's keys of strings are ordered.
    pub(super) collation: &'i Collation,
}

impl<'i> Rules<'i> {
    /// The rules for an index's field.
    pub(super) fn new(path: &str, multikey: bool, collation: &'i Collation) -> Rules<'i> {
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_many = multikey && !is_planted(Defect::ManyAsOne);
        let path_values = if is_many { PathValues::ManyValues } else { PathValues::OneValue };
        Rules {
            path_values,
            has_number: path.split('.').any(is_number),
            is_top_level: !path.contains('.'),
            is_hashed: false,
            is_element: false,
            has_single_elements: false,
            collation,
        }
    }

    /// These rules, for an index that files hashes.
    pub(super) fn hashed(self) -> Rules<'i> {
        Rules { is_hashed: true, ..self }
    }

    /// Whether a filter compares `operand` by other rules than the index's.
    fn is_foreign(self, operand: Value<'_>, filter: &Collation) -> bool {
        is_foreign(operand, filter, self.collation)
    }

    fn many_values(self) -> Rules<'i> {
        Rules { path_values: PathValues::ManyValues, ..self }
    }

    fn one_value(self) -> Rules<'i> {
        Rules { path_values: PathValues::OneValue, ..self }
    }

    fn element(self) -> Rules<'i> {
        Rules { path_values: PathValues::OneValue, is_element: true, ..self }
    }

    /// Returns the demand of one test, if it can be trusted.
    fn check(self, demand: PathBounds) -> Option<PathBounds> {
        let has_number = self.has_number && !is_planted(Defect::NumberAsField);
        let is_exact = demand.is_exact && !has_number && !self.is_hashed;
        (demand.is_present || !has_number).then_some(PathBounds { is_exact, ..demand })
    }
}

/// The number of values that a document may have at a path: two conditions combine by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathValues {
    /// One value fulfils both: their intervals are intersected.
    OneValue,
    /// Different array elements may fulfil them: one of them is chosen.
    ManyValues,
}

impl PathBounds {
    fn new(intervals: Vec<Interval>, is_present: bool) -> PathBounds {
        PathBounds { intervals: Intervals::union_of(intervals), is_present, is_exact: false }
    }

    fn anything(is_present: bool) -> PathBounds {
        PathBounds { intervals: Intervals::all(), is_present, is_exact: false }
    }

    fn exact_if(self, is_exact: bool) -> PathBounds {
        PathBounds { is_exact, ..self }
    }

    /// Both demands.
    fn and(self, other: PathBounds, path_values: PathValues) -> PathBounds {
        let is_present = self.is_present || other.is_present;
        let is_exact = self.is_exact && other.is_exact && path_values == PathValues::OneValue;
        let intervals = match path_values {
            PathValues::OneValue => self.intervals.intersection(&other.intervals),
            PathValues::ManyValues if other.intervals.width() < self.intervals.width() => {
                other.intervals
            }
            PathValues::ManyValues => self.intervals,
        };
        PathBounds { intervals, is_present, is_exact }
    }

    /// One of the demands: all at once, since an `$or` may have thousands.
    fn any(demands: Vec<PathBounds>) -> PathBounds {
        let is_exact = demands.iter().all(|demand| demand.is_exact);
        let is_present = demands.iter().all(|demand| demand.is_present);
        let intervals = demands.into_iter().flat_map(|demand| demand.intervals.into_vec());
        PathBounds::new(intervals.collect(), is_present).exact_if(is_exact)
    }
}

/// Whether `node` asks for nothing but conditions on `paths`, so that exact demands on each of them
/// decide whether a document passes.
pub(super) fn tests_only(node: &Node, paths: &[&str]) -> bool {
    match node {
        Node::And(nodes) => nodes.iter().all(|inner| tests_only(inner, paths)),
        Node::Or(nodes) => {
            // Branches on several paths can't be expressed by intervals of each.
            let mut named = nodes.iter().filter_map(only_path);
            let first = named.next();
            first.is_some_and(|first| {
                paths.contains(&first) && nodes.iter().all(|inner| only_path(inner) == Some(first))
            })
        }
        Node::Field(field) => paths.contains(&field.dotted.as_str()),
        _ => false,
    }
}

/// The only path that a node without logic asks for.
fn only_path(node: &Node) -> Option<&str> {
    match node {
        Node::Field(field) => Some(&field.dotted),
        _ => None,
    }
}

/// Returns the demand of `node` on the values at `path`; `None` if there is none.
pub(super) fn of_node(node: &Node, path: &str, rules: Rules<'_>) -> Option<PathBounds> {
    match node {
        Node::And(nodes) => nodes
            .iter()
            .filter_map(|inner| of_node(inner, path, rules))
            .reduce(|left, right| left.and(right, rules.path_values)),
        Node::Or(nodes) => {
            let branches: Option<Vec<PathBounds>> =
                nodes.iter().map(|inner| of_node(inner, path, rules)).collect();
            branches.filter(|branches| !branches.is_empty()).map(PathBounds::any)
        }
        Node::Field(field) if field.dotted == path => {
            Some(of_condition(&field.condition, rules).unwrap_or(PathBounds::anything(false)))
        }
        Node::Field(field) => {
            let below = path.strip_prefix(field.dotted.as_str())?.strip_prefix('.')?;
            of_elements(&field.condition, below, rules)
        }
        Node::Expression(expression) => of_expression(expression, path, rules),
        Node::Nor(_)
        | Node::Constant(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => None,
    }
}

/// Returns the demand of an `$expr`'s comparisons. They compare an array as a whole, which keys
/// don't hold, so it is known only where no array is on the path.
fn of_expression(expression: &Expression, path: &str, rules: Rules<'_>) -> Option<PathBounds> {
    let may_be_array = rules.path_values == PathValues::ManyValues || rules.has_number;
    if may_be_array && !is_planted(Defect::ArraysInExpressions) || rules.is_hashed {
        return None;
    }
    let demands = expression.ordered().iter().filter(|known| known.path == path);
    let demands = demands.filter_map(|known| of_known_comparison(known, rules));
    demands.reduce(|left, right| left.and(right, PathValues::OneValue))
}

fn of_known_comparison(known: &KnownComparison, rules: Rules<'_>) -> Option<PathBounds> {
    let value = known.value.as_value();
    if is_foreign(value, &known.collation, rules.collation) {
        return None;
    }
    let key = frond_doc::key::of_value(rules.collation.comparable(value).as_value()).to_vec();
    let all = Interval::all();
    // To an expression "$a.b" of `{a: []}` is an array, above each number; to an index nothing is
    // there, so that a sparse one lacks the document, and doesn't know that it has an array.
    let has_key = rules.is_top_level || is_planted(Defect::ArraysInExpressions);
    // What is absent is below all values that are noted.
    let (interval, is_present) = match known.relation {
        Relation::Equal => return None,
        Relation::Greater => (Interval { start: Cut::After(key), ..all }, has_key),
        Relation::GreaterOrEqual => (Interval { start: Cut::Before(key), ..all }, has_key),
        Relation::Less => (Interval { end: Cut::Before(key), ..all }, false),
        Relation::LessOrEqual => (Interval { end: Cut::After(key), ..all }, false),
    };
    Some(PathBounds::new(vec![interval], is_present))
}

/// Returns the demand of an `$elemMatch` on an outer path on the path `below` its elements.
fn of_elements(condition: &Condition, below: &str, rules: Rules<'_>) -> Option<PathBounds> {
    match condition {
        Condition::All(inner) => inner
            .iter()
            .filter_map(|inner| of_elements(inner, below, rules))
            .reduce(|left, right| left.and(right, PathValues::ManyValues)),
        Condition::Test(Test::ElementDocument(node)) => of_element(node, below, rules),
        _ => None,
    }
}

/// Returns the demand of the conditions of one `$elemMatch` on the path `below` its elements.
pub(super) fn of_element(node: &Node, below: &str, rules: Rules<'_>) -> Option<PathBounds> {
    // A number could name elements of a nested array, which keys don't reach.
    if below.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let rules = match rules.has_single_elements || is_planted(Defect::ElementsAsOne) {
        true => rules.one_value(),
        false => rules.many_values(),
    };
    // A condition that one element fulfils says nothing of the whole document.
    of_node(node, below, rules).map(|demand| demand.exact_if(false))
}

/// The paths and conditions of each `$elemMatch` of documents that every passing document fulfils.
pub(super) fn elements_of<'n>(node: &'n Node, found: &mut Vec<(&'n str, &'n Node)>) {
    match node {
        Node::And(nodes) => nodes.iter().for_each(|inner| elements_of(inner, found)),
        Node::Field(field) => elements_in(&field.condition, &field.dotted, found),
        _ => {}
    }
}

fn elements_in<'n>(condition: &'n Condition, path: &'n str, found: &mut Vec<(&'n str, &'n Node)>) {
    match condition {
        Condition::All(inner) => inner.iter().for_each(|inner| elements_in(inner, path, found)),
        Condition::Test(Test::ElementDocument(node)) => found.push((path, node)),
        _ => {}
    }
}

fn of_condition(condition: &Condition, rules: Rules<'_>) -> Option<PathBounds> {
    match condition {
        Condition::All(inner) => inner
            .iter()
            // A condition that isn't understood makes the whole inexact.
            .map(|inner| of_condition(inner, rules).unwrap_or(PathBounds::anything(false)))
            .reduce(|left, right| left.and(right, rules.path_values)),
        Condition::Test(test) => rules.check(of_test(test, rules)),
        Condition::Not(inner) => rules.check(of_negation(inner, rules)?),
    }
}

fn of_negation(inner: &Condition, rules: Rules<'_>) -> Option<PathBounds> {
    let is_present = match inner {
        // Absent: null, or undefined where the path leads into an empty array.
        Condition::Test(Test::Exists) => {
            let absent = [Value::Undefined, Value::Null].map(Interval::point);
            return (!rules.is_hashed).then(|| PathBounds::new(absent.to_vec(), false));
        }
        Condition::Test(Test::Compare(comparison)) => {
            comparison.matches(None) && rules.is_top_level
        }
        Condition::Test(Test::In(membership)) => membership.contains(None) && rules.is_top_level,
        _ => false,
    };
    if rules.path_values == PathValues::ManyValues && opposes_several(inner) {
        return None;
    }
    // None of the values lies within exact intervals, so that each key lies outside.
    let condition = inner;
    let inner = of_condition(condition, rules.one_value());
    // `a.b` reaches nothing in `{a: [1]}`, not even null, though its key is that of null.
    let may_be_null = rules.is_top_level || rules.path_values == PathValues::OneValue;
    // The elements of an array say nothing of what isn't one.
    let is_of_elements = has_element_test(condition);
    // A comparison with null finds absent values, too; `$type` and `$exists` distinguish them.
    let may_be_null = may_be_null && !is_of_elements && finds_absent(condition);
    let decides = |inner: &PathBounds| {
        inner.is_exact
            || may_be_null && is_null(&inner.intervals)
            || is_planted(Defect::OppositeOfInexact)
    };
    match inner.filter(decides) {
        Some(inner) => {
            // One of several values may lie outside, and another not.
            let is_exact = inner.is_exact && rules.path_values == PathValues::OneValue;
            let outside = inner.intervals.complement();
            Some(PathBounds { intervals: outside, is_present, is_exact })
        }
        None if is_present => Some(PathBounds::anything(true)),
        None => None,
    }
}

/// Whether a part of it is the opposite of several conditions: of many values one may fulfil the
/// one and another the other, so that all lie outside their common intervals though the opposite
/// isn't fulfilled.
fn opposes_several(condition: &Condition) -> bool {
    match condition {
        Condition::All(inner) => inner.iter().any(opposes_several),
        Condition::Test(_) => false,
        Condition::Not(inner) => match &**inner {
            Condition::All(several) if several.len() > 1 => true,
            other => opposes_several(other),
        },
    }
}

/// Whether all its parts compare with what absent values compare with, too.
fn finds_absent(condition: &Condition) -> bool {
    match condition {
        Condition::All(inner) => inner.iter().all(finds_absent),
        Condition::Test(Test::Compare(comparison)) => comparison.matches(None),
        Condition::Test(Test::In(membership)) => membership.contains(None),
        Condition::Test(_) | Condition::Not(_) => false,
    }
}

/// Whether a part of it asks for an element of an array.
fn has_element_test(condition: &Condition) -> bool {
    match condition {
        Condition::All(inner) => inner.iter().any(has_element_test),
        Condition::Not(inner) => has_element_test(inner),
        Condition::Test(test) => {
            matches!(test, Test::ElementValue(_) | Test::ElementDocument(_))
        }
    }
}

/// Whether the intervals are null alone: of `{$ne: null}`, whose documents have another key.
fn is_null(intervals: &Intervals) -> bool {
    *intervals == Intervals::union_of(vec![Interval::point(Value::Null)])
}

fn of_test(test: &Test, rules: Rules<'_>) -> PathBounds {
    match test {
        Test::Compare(comparison) if rules.is_hashed => match comparison.relation() {
            Relation::Equal if !rules.is_foreign(comparison.operand(), comparison.collation()) => {
                let hashed = vec![hashed(comparison.operand())];
                PathBounds::new(hashed, !comparison.matches(None))
            }
            _ => PathBounds::anything(!comparison.matches(None)),
        },
        Test::Compare(comparison) => of_comparison(comparison, rules.collation),
        Test::In(membership)
            if rules.is_hashed
                && membership.patterns().is_empty()
                && !membership
                    .values()
                    .iter()
                    .any(|value| rules.is_foreign(value.as_value(), membership.collation())) =>
        {
            let values = membership.values().iter().map(|value| hashed(value.as_value()));
            PathBounds::new(values.collect(), !membership.contains(None))
        }
        Test::In(membership) if rules.is_hashed => PathBounds::anything(!membership.contains(None)),
        Test::In(membership) => of_membership(membership, rules.collation),
        _ if rules.is_hashed => PathBounds::anything(true),
        Test::Pattern(pattern) => PathBounds::new(matching(pattern, rules.collation), true),
        Test::Type(types) => {
            let samples = types.types().iter().map(|kind| sample(*kind));
            match samples.collect::<Option<Vec<ValueBuf>>>() {
                Some(samples) => PathBounds::new(
                    samples.iter().map(|sample| Interval::bracket(sample.as_value())).collect(),
                    true,
                ),
                None => PathBounds::anything(true),
            }
        }
        Test::Remainder(_) => PathBounds::new(vec![Interval::bracket(Value::Int32(0))], true),
        Test::Exists
        | Test::Bits(_)
        | Test::Size(_)
        | Test::ElementDocument(_)
        | Test::Geo(_)
        | Test::Near(_) => PathBounds::anything(true),
        // One single element fulfils all of it, also on a multikey index.
        Test::ElementValue(_) if rules.is_element => PathBounds::anything(true),
        Test::ElementValue(condition) => match of_condition(condition, rules.element()) {
            Some(demand) => PathBounds { is_present: true, is_exact: false, ..demand },
            None => PathBounds::anything(true),
        },
        Test::Never => PathBounds::new(Vec::new(), true).exact_if(true),
    }
}

fn of_membership(membership: &Membership, collation: &Collation) -> PathBounds {
    let mut intervals = Vec::new();
    let mut is_exact = membership.patterns().is_empty();
    for value in membership.values() {
        if is_foreign(value.as_value(), membership.collation(), collation) {
            return PathBounds::anything(!membership.contains(None));
        }
        is_exact &= has_exact_key(value.as_value());
        intervals.extend(equal(collation.comparable(value.as_value()).as_value()));
    }
    for pattern in membership.patterns() {
        intervals.extend(matching(pattern, collation));
    }
    PathBounds::new(intervals, !membership.contains(None)).exact_if(is_exact)
}

fn hashed(value: Value<'_>) -> Interval {
    Interval::point(Value::Int64(hashed_key(value)))
}

/// The value that a condition demands, if it says nothing else and the value's key, which no
/// collation has changed, is exact.
pub(super) fn only_value(condition: &Condition) -> Option<Value<'_>> {
    match condition {
        Condition::Test(Test::Compare(comparison)) if comparison.relation() == Relation::Equal => {
            let is_known = |operand: Value<'_>| {
                let is_plain = comparison.collation().is_simple() || !holds_string(operand);
                is_plain && has_exact_key(operand)
            };
            Some(comparison.operand()).filter(|operand| is_known(*operand))
        }
        _ => None,
    }
}

/// The values one of which a condition demands, if it says nothing else and each one's key, which
/// no collation has changed, is exact.
pub(super) fn only_values(condition: &Condition) -> Option<&[ValueBuf]> {
    let Condition::Test(Test::In(membership)) = condition else { return None };
    let is_plain = |value: Value<'_>| membership.collation().is_simple() || !holds_string(value);
    let is_known = |value: &ValueBuf| is_plain(value.as_value()) && has_exact_key(value.as_value());
    let values = membership.values();
    let is_list = membership.patterns().is_empty() && !values.is_empty();
    (is_list && values.iter().all(is_known)).then_some(values)
}

/// Whether a value that has this value's key is equal to it in every comparison, and only such a
/// value. Null isn't: its key is that of an absent field too.
fn has_exact_key(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => !number.is_nan(),
        Value::Decimal128(_) => !frond_doc::order::equal(value, Value::Double(f64::NAN)),
        Value::Int32(_)
        | Value::Int64(_)
        | Value::String(_)
        | Value::ObjectId(_)
        | Value::Boolean(_)
        | Value::DateTime(_)
        | Value::Timestamp(_)
        | Value::Binary(_) => true,
        _ => false,
    }
}

/// A value whose bracket is that of a type; `None` where keys don't show the type: of an array they
/// hold the elements.
fn sample(kind: frond_doc::ElementType) -> Option<ValueBuf> {
    use frond_doc::ElementType as Type;
    Some(
        match kind {
            Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128 => Value::Int32(0),
            Type::String | Type::Symbol => Value::String(""),
            Type::ObjectId => Value::ObjectId(frond_doc::ObjectId([0; 12])),
            Type::Boolean => Value::Boolean(false),
            Type::DateTime => Value::DateTime(0),
            Type::Timestamp => Value::Timestamp(frond_doc::Timestamp(0)),
            Type::Null => Value::Null,
            Type::MinKey => Value::MinKey,
            Type::MaxKey => Value::MaxKey,
            _ => return None,
        }
        .to_buf(),
    )
}

/// Whether a filter compares `operand` by other rules than an index's keys: strings may lie
/// anywhere among its keys of strings then.
fn is_foreign(operand: Value<'_>, filter: &Collation, index: &Collation) -> bool {
    holds_string(operand) && filter != index
}

fn of_comparison(comparison: &Comparison, collation: &Collation) -> PathBounds {
    let operand = comparison.operand();
    let is_present = !comparison.matches(None);
    let relation = comparison.relation();
    if is_foreign(operand, comparison.collation(), collation) {
        return PathBounds::anything(is_present);
    }
    let comparable = collation.comparable(operand);
    let operand = comparable.as_value();
    let is_exact = has_exact_key(operand);
    if relation == Relation::Equal {
        return PathBounds::new(equal(operand), is_present).exact_if(is_exact);
    }
    // Arrays are compared as wholes, which keys don't hold; MinKey and MaxKey with all types.
    if matches!(operand, Value::Array(_) | Value::MinKey | Value::MaxKey) {
        return PathBounds::anything(is_present);
    }
    let mut interval = Interval::bracket(operand);
    let key = frond_doc::key::of_value(operand).to_vec();
    match relation {
        Relation::Greater => interval.start = Cut::After(key),
        Relation::GreaterOrEqual => interval.start = Cut::Before(key),
        Relation::Less => interval.end = Cut::Before(key),
        Relation::LessOrEqual => interval.end = Cut::After(key),
        Relation::Equal => {}
    }
    // NaN lies before all numbers, and is below none.
    if matches!(relation, Relation::Less | Relation::LessOrEqual) && operand.is_number() && is_exact
    {
        interval.start =
            Cut::Before(frond_doc::key::of_value(Value::Double(f64::NEG_INFINITY)).to_vec());
    }
    PathBounds::new(vec![interval], is_present).exact_if(is_exact)
}

/// The keys of documents that have `value`: of an array, its first element's, or undefined if it is
/// empty; or its own where it is an element itself.
fn equal(value: Value<'_>) -> Vec<Interval> {
    let mut intervals = vec![Interval::point(value)];
    if let Value::Array(array) = value {
        intervals.push(Interval::point(array.iter().next().unwrap_or(Value::Undefined)));
    }
    intervals
}

/// Strings that may match, and patterns as values. A pattern asks strings themselves, whose
/// beginning collated keys don't show.
fn matching(pattern: &Pattern, collation: &Collation) -> Vec<Interval> {
    let (source, options) = pattern.source();
    let itself = Value::Regex(frond_doc::Regex { pattern: source, options });
    let strings = match pattern.prefix().filter(|_| collation.is_simple()) {
        Some(prefix) => {
            let mut key = frond_doc::key::of_value(Value::String(&prefix)).to_vec();
            key.pop(); // The end of the text: what follows the prefix is free.
            Interval::beginning_with(key)
        }
        None => Interval::bracket(Value::String("")),
    };
    vec![strings, Interval::point(itself)]
}
