//! A small value tree, random documents and filters, and a matcher that is written for clarity: it
//! lists all values that a path reaches and asks each of them.

use std::cmp::Ordering;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_testkit::Random;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Model {
    MinKey,
    Null,
    Int(i32),
    Double(f64),
    Text(&'static str),
    Document(Vec<(&'static str, Model)>),
    Array(Vec<Model>),
    Boolean(bool),
    MaxKey,
}

use Model::*;

impl Model {
    pub fn append(&self, out: &mut DocumentBuilder, name: &str) {
        match self {
            MinKey => out.append(name, Value::MinKey),
            Null => out.append(name, Value::Null),
            Int(number) => out.append(name, Value::Int32(*number)),
            Double(number) => out.append(name, Value::Double(*number)),
            Text(text) => out.append(name, Value::String(text)),
            Boolean(boolean) => out.append(name, Value::Boolean(*boolean)),
            MaxKey => out.append(name, Value::MaxKey),
            Document(fields) => {
                out.begin_document(name);
                fields.iter().for_each(|(name, value)| value.append(out, name));
                out.end()
            }
            Array(elements) => {
                out.begin_array(name);
                for (position, element) in elements.iter().enumerate() {
                    element.append(out, &position.to_string());
                }
                out.end()
            }
        };
    }

    fn rank(&self) -> u8 {
        match self {
            MinKey => 0,
            Null => 2,
            Int(_) | Double(_) => 3,
            Text(_) => 4,
            Document(_) => 5,
            Array(_) => 6,
            Boolean(_) => 7,
            MaxKey => 8,
        }
    }

    fn number(&self) -> f64 {
        match self {
            Int(number) => f64::from(*number),
            Double(number) => *number,
            _ => unreachable!("only numbers are asked"),
        }
    }
}

fn compare(left: &Model, right: &Model) -> Ordering {
    let by_rank = left.rank().cmp(&right.rank());
    by_rank.then_with(|| match (left, right) {
        (Text(left), Text(right)) => left.cmp(right),
        (Boolean(left), Boolean(right)) => left.cmp(right),
        (Array(left), Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| compare(left, right));
            pairs.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        (Document(left), Document(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| {
                let by_rank = left.1.rank().cmp(&right.1.rank());
                by_rank.then(left.0.cmp(right.0)).then_with(|| compare(&left.1, &right.1))
            });
            pairs.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        (Int(_) | Double(_), _) => {
            let (left, right) = (left.number(), right.number());
            left.partial_cmp(&right).unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
        }
        _ => Ordering::Equal,
    })
}

/// A condition on a path.
#[derive(Clone, Debug)]
pub enum Condition {
    Compare(&'static str, Model),
    In(Vec<Model>),
    NotIn(Vec<Model>),
    All(Vec<Model>),
    Exists(bool),
    Size(usize),
    TypeIs(&'static str),
    BeginsWith(&'static str),
    ElementValue(Vec<Condition>),
    ElementDocument(Box<Filter>),
    Not(Vec<Condition>),
}

/// A filter.
#[derive(Clone, Debug)]
pub enum Filter {
    Logic(&'static str, Vec<Filter>),
    Field(&'static str, Vec<Condition>),
}

/// A value that a path reached.
struct Reached<'m> {
    value: Option<&'m Model>,
    is_expandable: bool,
}

fn reach<'m>(document: &'m Model, path: &[&str], found: &mut Vec<Reached<'m>>) {
    let Document(fields) = document else { unreachable!("only documents are walked") };
    let value = fields.iter().find(|(name, _)| *name == path[0]).map(|(_, value)| value);
    match (value, &path[1..]) {
        (value, []) => found.push(Reached { value, is_expandable: true }),
        (Some(inner @ Document(_)), rest) => reach(inner, rest, found),
        (Some(Array(elements)), rest) => reach_elements(elements, rest, found),
        _ => found.push(Reached { value: None, is_expandable: false }),
    }
}

fn reach_elements<'m>(elements: &'m [Model], path: &[&str], found: &mut Vec<Reached<'m>>) {
    for (position, element) in elements.iter().enumerate() {
        if matches!(element, Document(_)) {
            reach(element, path, found);
        }
        if position.to_string() == path[0] {
            match (element, &path[1..]) {
                (value, []) => found.push(Reached { value: Some(value), is_expandable: false }),
                (inner @ Document(_), rest) => reach(inner, rest, found),
                (Array(inner), rest) => reach_elements(inner, rest, found),
                _ => {}
            }
        }
    }
}

impl Filter {
    pub fn matches(&self, document: &Model) -> bool {
        match self {
            Filter::Logic("$and", inner) => inner.iter().all(|inner| inner.matches(document)),
            Filter::Logic("$or", inner) => inner.iter().any(|inner| inner.matches(document)),
            Filter::Logic(_, inner) => !inner.iter().any(|inner| inner.matches(document)),
            Filter::Field(path, conditions) => {
                conditions.iter().all(|condition| condition.matches_at(path, document))
            }
        }
    }

    pub fn append(&self, out: &mut DocumentBuilder) {
        match self {
            Filter::Logic(name, inner) => {
                out.begin_array(name);
                for inner in inner {
                    out.push_begin_document();
                    inner.append(out);
                    out.end();
                }
                out.end();
            }
            Filter::Field(path, conditions) => {
                out.begin_document(path);
                conditions.iter().for_each(|condition| condition.append(out));
                out.end();
            }
        }
    }

    pub fn to_bson(&self) -> DocumentBuf {
        let mut out = DocumentBuilder::new();
        self.append(&mut out);
        out.build()
    }
}

impl Condition {
    fn matches_at(&self, path: &str, document: &Model) -> bool {
        match self {
            Condition::Not(inner) => !inner.iter().all(|inner| inner.matches_at(path, document)),
            Condition::Compare("$ne", value) => {
                !Condition::Compare("$eq", value.clone()).matches_at(path, document)
            }
            Condition::NotIn(values) => !Condition::In(values.clone()).matches_at(path, document),
            Condition::Exists(false) => !Condition::Exists(true).matches_at(path, document),
            Condition::All(values) => {
                !values.is_empty()
                    && values.iter().all(|value| {
                        Condition::Compare("$eq", value.clone()).matches_at(path, document)
                    })
            }
            _ => {
                let parts: Vec<&str> = path.split('.').collect();
                let mut found = Vec::new();
                reach(document, &parts, &mut found);
                let is_whole = matches!(
                    self,
                    Condition::Size(_) | Condition::ElementValue(_) | Condition::ElementDocument(_)
                );
                found.iter().any(|reached| {
                    self.matches(reached.value)
                        || match reached.value {
                            Some(Array(elements)) if reached.is_expandable && !is_whole => {
                                elements.iter().any(|element| self.matches(Some(element)))
                            }
                            _ => false,
                        }
                })
            }
        }
    }

    fn matches(&self, value: Option<&Model>) -> bool {
        match self {
            Condition::Compare("$ne", operand) => !holds("$eq", value, operand),
            Condition::Compare(relation, operand) => holds(relation, value, operand),
            Condition::In(values) => values.iter().any(|operand| holds("$eq", value, operand)),
            Condition::NotIn(values) => !values.iter().any(|operand| holds("$eq", value, operand)),
            Condition::All(values) => {
                !values.is_empty() && values.iter().all(|operand| holds("$eq", value, operand))
            }
            Condition::Exists(wanted) => value.is_some() == *wanted,
            Condition::Size(count) => matches!(value, Some(Array(array)) if array.len() == *count),
            Condition::TypeIs("number") => matches!(value, Some(Int(_) | Double(_))),
            Condition::TypeIs("null") => matches!(value, Some(Null)),
            Condition::TypeIs(_) => matches!(value, Some(Array(_))),
            Condition::BeginsWith(text) => {
                matches!(value, Some(Text(value)) if value.starts_with(text))
            }
            Condition::ElementValue(inner) => matches!(value, Some(Array(elements))
            if elements.iter().any(|element| {
                inner.iter().all(|inner| inner.matches(Some(element)))
            })),
            Condition::ElementDocument(filter) => matches!(value, Some(Array(elements))
            if elements.iter().any(|element| match element {
                Document(_) => filter.matches(element),
                Array(inner) => filter.matches(&by_position(inner)),
                _ => false,
            })),
            Condition::Not(inner) => !inner.iter().all(|inner| inner.matches(value)),
        }
    }

    fn append(&self, out: &mut DocumentBuilder) {
        let list = |out: &mut DocumentBuilder, name: &str, values: &[Model]| {
            Array(values.to_vec()).append(out, name);
        };
        match self {
            Condition::Compare(relation, operand) => operand.append(out, relation),
            Condition::In(values) => list(out, "$in", values),
            Condition::NotIn(values) => list(out, "$nin", values),
            Condition::All(values) => list(out, "$all", values),
            Condition::Exists(wanted) => Boolean(*wanted).append(out, "$exists"),
            Condition::Size(count) => Int(*count as i32).append(out, "$size"),
            Condition::TypeIs(alias) => Text(alias).append(out, "$type"),
            Condition::BeginsWith(text) => {
                out.append("$regex", Value::String(&format!("^{text}")));
            }
            Condition::ElementValue(inner) | Condition::Not(inner) => {
                let is_not = matches!(self, Condition::Not(_));
                out.begin_document(if is_not { "$not" } else { "$elemMatch" });
                inner.iter().for_each(|inner| inner.append(out));
                out.end();
            }
            Condition::ElementDocument(filter) => {
                out.begin_document("$elemMatch");
                filter.append(out);
                out.end();
            }
        }
    }
}

fn by_position(elements: &[Model]) -> Model {
    const NAMES: [&str; 4] = ["0", "1", "2", "3"];
    Document(elements.iter().enumerate().map(|(at, value)| (NAMES[at], value.clone())).collect())
}

fn holds(relation: &str, value: Option<&Model>, operand: &Model) -> bool {
    let value = match (value, operand) {
        (Some(value), _) => value,
        (None, MinKey) => return matches!(relation, "$gt" | "$gte"),
        (None, MaxKey) => return matches!(relation, "$lt" | "$lte"),
        (None, _) => &Null,
    };
    let ordering = compare(value, operand);
    let is_nan = |side: &Model| matches!(side, Double(number) if number.is_nan());
    if value.rank() != operand.rank() {
        if !matches!(operand, MinKey | MaxKey) {
            return false;
        }
    } else if is_nan(value) || is_nan(operand) {
        return ordering.is_eq() && !matches!(relation, "$gt" | "$lt");
    }
    match relation {
        "$eq" => ordering.is_eq(),
        "$gt" => ordering.is_gt(),
        "$gte" => ordering.is_ge(),
        "$lt" => ordering.is_lt(),
        _ => ordering.is_le(),
    }
}

const NAMES: [&str; 3] = ["a", "b", "0"];
pub const PATHS: [&str; 9] = ["a", "b", "a.b", "a.a", "a.0", "b.a", "a.0.b", "a.b.a", "b.1"];

fn scalar(random: &mut Random) -> Model {
    match random.below(12) {
        0 => Null,
        1 => Boolean(random.one_in(2)),
        2 => Double(f64::NAN),
        3 => Double(random.below(4) as f64 / 2.0),
        4 => [MinKey, MaxKey][random.below(2)].clone(),
        5..=7 => Text(random.choose::<&str>(&["", "a", "ab", "b"])),
        _ => Int(random.below(4) as i32),
    }
}

/// Makes any value, nested at most `depth` deep.
pub fn value(random: &mut Random, depth: usize) -> Model {
    if depth == 0 || random.one_in(2) {
        return scalar(random);
    }
    match random.one_in(2) {
        true => Array((0..random.below(4)).map(|_| value(random, depth - 1)).collect()),
        false => document(random, depth - 1),
    }
}

/// A document of a few fields with few names, nested at most `depth` deeper.
pub fn document(random: &mut Random, depth: usize) -> Model {
    let mut fields = Vec::new();
    for name in NAMES {
        if !random.one_in(3) {
            fields.push((name, value(random, depth)));
        }
    }
    Document(fields)
}

fn values(random: &mut Random) -> Vec<Model> {
    (0..random.below(4)).map(|_| value(random, 1)).collect()
}

fn condition(random: &mut Random, depth: usize) -> Condition {
    let relation = *random.choose(&["$eq", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
    match random.below(if depth == 0 { 11 } else { 14 }) {
        0..=3 => Condition::Compare(relation, value(random, 1)),
        4 => Condition::In(values(random)),
        5 => Condition::NotIn(values(random)),
        6 => Condition::All(values(random)),
        7 => Condition::Exists(random.one_in(2)),
        8 => match random.one_in(2) {
            true => Condition::Size(random.below(3)),
            false => Condition::TypeIs(random.choose::<&str>(&["number", "null", "array"])),
        },
        9 | 10 => Condition::BeginsWith(random.choose::<&str>(&["a", "ab", "b"])),
        11 => Condition::Not(conditions(random, depth - 1)),
        12 => Condition::ElementValue(conditions(random, depth - 1)),
        _ => Condition::ElementDocument(Box::new(filter(random, depth - 1))),
    }
}

fn conditions(random: &mut Random, depth: usize) -> Vec<Condition> {
    let mut conditions = vec![condition(random, depth)];
    if random.one_in(2) {
        let second = condition(random, depth);
        // A document can't hold one name twice here: the first alone would be seen by drivers.
        if std::mem::discriminant(&second) != std::mem::discriminant(&conditions[0]) {
            conditions.push(second);
        }
    }
    conditions
}

/// A filter, nested at most `depth` deep.
pub fn filter(random: &mut Random, depth: usize) -> Filter {
    if depth > 0 && random.one_in(2) {
        let name = random.choose::<&str>(&["$and", "$and", "$or", "$nor"]);
        let count = 1 + random.below(3);
        return Filter::Logic(name, (0..count).map(|_| filter(random, depth - 1)).collect());
    }
    Filter::Field(random.choose::<&str>(&PATHS), conditions(random, depth))
}

/// A filter on one of [`PATHS`].
pub fn filter_on(random: &mut Random, path: &str) -> Filter {
    let path = PATHS.into_iter().find(|known| *known == path).expect("one of the paths");
    Filter::Field(path, conditions(random, 1))
}

/// The BSON of a document, with an `_id` in front.
pub fn to_bson(document: &Model, id: i32) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", Value::Int32(id));
    let Document(fields) = document else { unreachable!("only documents are stored") };
    fields.iter().for_each(|(name, value)| value.append(&mut out, name));
    out.build()
}
