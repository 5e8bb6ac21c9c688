//! Applies an `updateDescription` to a document.
//!
//! It is applied to the very document that the update changed, so it fits: removed fields are
//! there, and so is the container of a path's last step. New fields go to the end, in the order in
//! which the description has them, as the update put them. `$set` would sort them by name.
//!
//! A step is a position if it leads into an array, else a name. Names that hold dots, and those
//! that could be positions, are distinguished by `disambiguatedPaths`.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

/// A document or an array, taken apart.
enum Node<'a> {
    Fields(Vec<(String, Node<'a>)>),
    Items(Vec<Node<'a>>),
    Leaf(Value<'a>),
}

/// The document that `description` makes of `before`; `None` if it doesn't fit.
pub fn apply(before: &DocumentBuf, description: Document<'_>) -> Option<DocumentBuf> {
    let mut root = node(Value::Document(before.view()));
    let ambiguous = description.get("disambiguatedPaths").and_then(|paths| paths.as_document());
    let steps = |path: &str| -> Vec<String> {
        let ambiguous_paths = ambiguous.and_then(|paths| paths.get(path)?.as_array());
        match ambiguous_paths {
            Some(steps) => steps.iter().map(step).collect(),
            None => path.split('.').map(str::to_owned).collect(),
        }
    };
    let list = |name: &str| description.get(name).and_then(|list| list.as_array());
    for path in list("removedFields").iter().flat_map(|list| list.iter()) {
        remove(&mut root, &steps(path.as_str()?))?;
    }
    for cut in list("truncatedArrays").iter().flat_map(|list| list.iter()) {
        let cut = cut.as_document()?;
        let count = usize::try_from(cut.get("newSize")?.as_integer()?).ok()?;
        match find(&mut root, &steps(cut.get("field")?.as_str()?))? {
            Node::Items(items) => items.truncate(count),
            _ => return None,
        }
    }
    for (path, value) in description.get("updatedFields")?.as_document()?.iter() {
        set(&mut root, &steps(path), node(value))?;
    }
    let Node::Fields(fields) = root else { return None };
    let mut builder = DocumentBuilder::with_capacity(before.as_bytes().len());
    append_fields(&mut builder, &fields);
    Some(builder.build())
}

fn step(value: Value<'_>) -> String {
    match value.as_integer() {
        Some(position) => position.to_string(),
        None => value.as_str().unwrap_or("").to_owned(),
    }
}

fn node(value: Value<'_>) -> Node<'_> {
    match value {
        Value::Document(document) => {
            Node::Fields(document.iter().map(|(name, it)| (name.to_owned(), node(it))).collect())
        }
        Value::Array(array) => Node::Items(array.iter().map(node).collect()),
        other => Node::Leaf(other),
    }
}

fn child<'n, 'a>(at: &'n mut Node<'a>, name: &str) -> Option<&'n mut Node<'a>> {
    match at {
        Node::Fields(fields) => {
            fields.iter_mut().find(|(field, _)| field == name).map(|(_, child)| child)
        }
        Node::Items(items) => items.get_mut(name.parse::<usize>().ok()?),
        Node::Leaf(_) => None,
    }
}

fn find<'n, 'a>(mut at: &'n mut Node<'a>, path: &[String]) -> Option<&'n mut Node<'a>> {
    for name in path {
        at = child(at, name)?;
    }
    Some(at)
}

fn remove(root: &mut Node<'_>, path: &[String]) -> Option<()> {
    let (last, parent) = path.split_last()?;
    let Node::Fields(fields) = find(root, parent)? else { return None };
    let position = fields.iter().position(|(name, _)| name == last)?;
    fields.remove(position);
    Some(())
}

/// Sets a field or an item; one behind an array's end is put there.
fn set<'a>(root: &mut Node<'a>, path: &[String], new: Node<'a>) -> Option<()> {
    let (last, parent) = path.split_last()?;
    let parent = find(root, parent)?;
    if let Some(there) = child(parent, last) {
        *there = new;
        return Some(());
    }
    match parent {
        Node::Fields(fields) => fields.push((last.clone(), new)),
        Node::Items(items) => {
            let position: usize = last.parse().ok()?;
            // A description has every item behind the old end.
            if position != items.len() {
                return None;
            }
            items.push(new);
        }
        Node::Leaf(_) => return None,
    }
    Some(())
}

fn append_fields(builder: &mut DocumentBuilder, fields: &[(String, Node<'_>)]) {
    for (name, child) in fields {
        match child {
            Node::Leaf(value) => {
                builder.append(name, *value);
            }
            Node::Fields(fields) => {
                builder.begin_document(name);
                append_fields(builder, fields);
                builder.end();
            }
            Node::Items(items) => {
                builder.begin_array(name);
                push_items(builder, items);
                builder.end();
            }
        }
    }
}

fn push_items(builder: &mut DocumentBuilder, items: &[Node<'_>]) {
    for item in items {
        match item {
            Node::Leaf(value) => {
                builder.push(*value);
            }
            Node::Fields(fields) => {
                builder.push_begin_document();
                append_fields(builder, fields);
                builder.end();
            }
            Node::Items(items) => {
                builder.push_begin_array();
                push_items(builder, items);
                builder.end();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json::{self, Form};

    use super::*;

    fn applied(before: &str, description: &str) -> Option<String> {
        let before = extended_json::parse(before).unwrap();
        let description = extended_json::parse(description).unwrap();
        apply(&before, description.view()).map(|after| {
            let mut text = String::new();
            extended_json::write(after.view(), Form::Relaxed, &mut text);
            text
        })
    }

    #[test]
    fn descriptions_are_applied_in_their_order() {
        for (before, description, expected) in [
            (r#"{"a":1}"#, r#"{"updatedFields":{"c":2,"b":3}}"#, Some(r#"{"a":1,"c":2,"b":3}"#)),
            (
                r#"{"a":[1,2,3],"b":{"x":1,"y":2}}"#,
                r#"{"updatedFields":{"a.1":9,"b.y":{"z":[]}},"removedFields":["b.x"],
                    "truncatedArrays":[{"field":"a","newSize":2}]}"#,
                Some(r#"{"a":[1,9],"b":{"y":{"z":[]}}}"#),
            ),
            (r#"{"a":[1]}"#, r#"{"updatedFields":{"a.1":2}}"#, Some(r#"{"a":[1,2]}"#)),
            (r#"{"a":{}}"#, r#"{"updatedFields":{"a.1":2}}"#, Some(r#"{"a":{"1":2}}"#)),
            (
                r#"{"a":{"b.c":1}}"#,
                r#"{"updatedFields":{"a.b.c":2},"disambiguatedPaths":{"a.b.c":["a","b.c"]}}"#,
                Some(r#"{"a":{"b.c":2}}"#),
            ),
            (r#"{"a":1}"#, r#"{"updatedFields":{"a.b":2}}"#, None),
            (r#"{"a":1}"#, r#"{"updatedFields":{},"removedFields":["b"]}"#, None),
            (r#"{"a":[]}"#, r#"{"updatedFields":{"a.2":2}}"#, None),
        ] {
            assert_eq!(applied(before, description).as_deref(), expected, "{description}");
        }
    }
}
