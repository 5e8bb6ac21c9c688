//! Queries and changes as MongoDB says them: for its wire, and for Frond embedded.

use bson::{Bson, Document, doc};

use crate::query::{
    Answer, Change, CollectionSpec, Comparison, Condition, Direction, IndexSpec, Query,
};
use crate::target::Failure;

/// The filter.
pub fn filter(conditions: &[Condition]) -> Document {
    let mut filter = Document::new();
    for condition in conditions {
        let operator = match condition.comparison {
            Comparison::Equal => {
                filter.insert(&condition.path, condition.value.clone());
                continue;
            }
            Comparison::AtLeast => "$gte",
            Comparison::Less => "$lt",
            Comparison::AnyOf => "$in",
        };
        // Two conditions may bound the same field.
        match filter.get_mut(&condition.path) {
            Some(Bson::Document(both)) => {
                both.insert(operator, condition.value.clone());
            }
            _ => {
                filter.insert(&condition.path, doc! { operator: condition.value.clone() });
            }
        }
    }
    filter
}

/// The order, if there is one.
pub fn sort(query: &Query) -> Option<Document> {
    let sort = query.sort.as_ref()?;
    let direction = match sort.direction {
        Direction::Ascending => 1,
        Direction::Descending => -1,
    };
    Some(doc! { &sort.path: direction })
}

/// What of the documents, if not all.
pub fn projection(query: &Query) -> Option<Document> {
    let Answer::Fields(paths) = &query.answer else {
        return None;
    };
    let mut projection = doc! { "_id": 0 };
    for path in paths {
        match path.rsplit_once('.') {
            // Named by its last part, as the contract says.
            Some((_, name)) => projection.insert(name, format!("${path}")),
            None => projection.insert(path, 1),
        };
    }
    Some(projection)
}

/// The update.
pub fn update(changes: &[Change]) -> Document {
    let mut update = Document::new();
    let mut add = |operator: &str, path: &str, value: Bson| {
        match update.get_mut(operator) {
            Some(Bson::Document(fields)) => {
                fields.insert(path, value);
            }
            _ => {
                update.insert(operator, doc! { path: value });
            }
        };
    };
    for change in changes {
        match change {
            Change::Set(path, value) => add("$set", path, value.clone()),
            Change::Add(path, number) => add("$inc", path, Bson::Int64(*number)),
            Change::InsertAt { path, position, value } => {
                let position = Bson::Int64(*position as i64);
                let push = doc! { "$each": [value.clone()], "$position": position };
                add("$push", path, Bson::Document(push));
            }
            Change::RemoveAt { path, value, .. } => add("$pull", path, value.clone()),
        }
    }
    update
}

/// One element of `updates`.
pub fn update_statement(id: &Bson, changes: &[Change]) -> Document {
    doc! { "q": { "_id": id.clone() }, "u": update(changes) }
}

/// The command that changes several documents.
pub fn update_each(collection: &str, changes: &[(Bson, Vec<Change>)]) -> Document {
    let statement =
        |(id, changes): &(Bson, Vec<Change>)| Bson::Document(update_statement(id, changes));
    let statements: Vec<Bson> = changes.iter().map(statement).collect();
    doc! { "update": collection, "updates": statements }
}

/// The pipeline that copies a collection with one change.
///
/// # Errors
/// [`Failure::Unsupported`] for what isn't a [`Change::Set`].
pub fn copy(to: &str, change: &Change) -> Result<Vec<Document>, Failure> {
    match change {
        Change::Set(path, value) => {
            Ok(vec![doc! { "$set": { path: { "$literal": value.clone() } } }, doc! { "$out": to }])
        }
        _ => Err(Failure::Unsupported("a copy can only set a field".into())),
    }
}

/// An index's keys.
fn keys(index: &IndexSpec) -> Document {
    index.fields.iter().map(|(path, _)| (path.clone(), Bson::Int32(1))).collect()
}

/// An index as `createIndexes` takes it. `clustering` is Frond's own: the index holds whole
/// documents.
pub fn index(index: &IndexSpec) -> Document {
    let mut spec = doc! { "key": keys(index), "name": &index.name };
    if index.clustered {
        spec.insert("clustering", true);
    }
    spec
}

/// `createIndexes` for some indexes; `None` for none.
pub fn create_indexes(collection: &str, indexes: &[IndexSpec]) -> Option<Document> {
    if indexes.is_empty() {
        return None;
    }
    let specs: Vec<Document> = indexes.iter().map(index).collect();
    Some(doc! { "createIndexes": collection, "indexes": specs })
}

/// The collection's indexes as a command.
pub fn indexes_of(collection: &CollectionSpec) -> Option<Document> {
    create_indexes(&collection.name, &collection.indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_one_field_come_together() {
        let query = Query::all("c")
            .filter("a", Comparison::AtLeast, 3_i64)
            .filter("a", Comparison::Less, 5_i64)
            .equal("b", "x");
        let expected = doc! { "a": { "$gte": 3_i64, "$lt": 5_i64 }, "b": "x" };
        assert_eq!(filter(&query.conditions), expected);
    }

    #[test]
    fn changes_of_one_kind_come_together() {
        let changes = [
            Change::Set("a".into(), 1_i64.into()),
            Change::Add("n".into(), 2),
            Change::Set("b.c".into(), "x".into()),
        ];
        let expected = doc! { "$set": { "a": 1_i64, "b.c": "x" }, "$inc": { "n": 2_i64 } };
        assert_eq!(update(&changes), expected);
    }
}
