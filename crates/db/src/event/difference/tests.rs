//! Descriptions are applied to the old document, and give the new one to the byte.
//!
//! *Method*: random documents of few names, changed at random places; a naive applier that knows
//! nothing of how descriptions are made.

use frond_doc::{DocumentBuf, Value, ValueBuf, document, extended_json};
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};

use super::{PARTS, applied, describe};

/// A document or an array, taken apart.
#[derive(Clone, PartialEq, Debug)]
enum Node {
    Fields(Vec<(String, Node)>),
    Items(Vec<Node>),
    Leaf(ValueBuf),
}

fn node(value: Value<'_>) -> Node {
    match value {
        Value::Document(document) => {
            Node::Fields(document.iter().map(|(name, it)| (name.to_owned(), node(it))).collect())
        }
        Value::Array(array) => Node::Items(array.iter().map(node).collect()),
        other => Node::Leaf(other.to_buf()),
    }
}

fn fields(document: &DocumentBuf) -> Node {
    node(Value::Document(document.view()))
}

fn set(at: &mut Node, path: &[String], new: Node) {
    let (name, rest) = path.split_first().unwrap();
    let child = match at {
        Node::Fields(fields) => match fields.iter().position(|(field, _)| field == name) {
            Some(position) => &mut fields[position].1,
            None => {
                fields.push((name.clone(), Node::Items(Vec::new())));
                &mut fields.last_mut().unwrap().1
            }
        },
        Node::Items(items) => {
            let position: usize = name.parse().unwrap();
            assert!(position <= items.len(), "no position is left out");
            if position == items.len() {
                items.push(Node::Items(Vec::new()));
            }
            &mut items[position]
        }
        Node::Leaf(_) => panic!("a path through a value"),
    };
    if rest.is_empty() { *child = new } else { set(child, rest, new) }
}

fn find<'a>(at: &'a mut Node, path: &[String]) -> &'a mut Node {
    let Some((name, rest)) = path.split_first() else { return at };
    match at {
        Node::Fields(fields) => {
            find(&mut fields.iter_mut().find(|(field, _)| field == name).unwrap().1, rest)
        }
        Node::Items(items) => find(&mut items[name.parse::<usize>().unwrap()], rest),
        Node::Leaf(_) => panic!("a path through a value"),
    }
}

fn apply(before: &DocumentBuf, description: &DocumentBuf) -> Node {
    let mut root = fields(before);
    let part = |name: &str| description.get(name).unwrap();
    let known = description.get(PARTS).map(|known| known.as_document().unwrap());
    let parts = |path: &str| -> Vec<String> {
        let Some(parts) = known.and_then(|known| known.get(path)) else {
            return path.split('.').map(str::to_owned).collect();
        };
        let name = |part: Value<'_>| match part {
            Value::String(name) => name.to_owned(),
            other => other.as_integer().unwrap().to_string(),
        };
        parts.as_array().unwrap().iter().map(name).collect()
    };
    for removed in part("removedFields").as_array().unwrap().iter() {
        let Value::String(path) = removed else { panic!() };
        let path = parts(path);
        let (last, parent) = path.split_last().unwrap();
        let Node::Fields(fields) = find(&mut root, parent) else { panic!() };
        let count = fields.len();
        fields.retain(|(name, _)| name != last);
        assert_eq!(fields.len(), count - 1);
    }
    for cut in part("truncatedArrays").as_array().unwrap().iter() {
        let cut = cut.as_document().unwrap();
        let Some(Value::String(path)) = cut.get("field") else { panic!() };
        let Some(Value::Int32(count)) = cut.get("newSize") else { panic!() };
        let Node::Items(items) = find(&mut root, &parts(path)) else { panic!() };
        assert!((count as usize) < items.len());
        items.truncate(count as usize);
    }
    for (path, value) in part("updatedFields").as_document().unwrap().iter() {
        set(&mut root, &parts(path), node(value));
    }
    root
}

const NAMES: &[&str] = &["a", "b", "c", "dd", "e", "1", "x.y", "", "$z"];

fn random_node(random: &mut Random, depth: usize) -> Node {
    match random.below(if depth > 3 { 2 } else { 6 }) {
        0 => Node::Leaf(Value::Int32(random.below(3) as i32).to_buf()),
        1 => Node::Leaf(Value::String(["s", "t"][random.below(2)]).to_buf()),
        2 | 3 => {
            Node::Items((0..random.below(5)).map(|_| random_node(random, depth + 1)).collect())
        }
        _ => random_fields(random, depth + 1),
    }
}

fn random_fields(random: &mut Random, depth: usize) -> Node {
    let mut fields: Vec<(String, Node)> = Vec::new();
    let names = if random.one_in(3) { NAMES } else { &NAMES[..5] };
    for _ in 0..random.below(6) {
        let name = (*random.choose(names)).to_owned();
        // Now and then twice.
        if random.one_in(20) || fields.iter().all(|(other, _)| *other != name) {
            fields.push((name, random_node(random, depth)));
        }
    }
    Node::Fields(fields)
}

fn change(node: &mut Node, random: &mut Random, depth: usize) {
    match node {
        Node::Fields(fields) => match random.below(6) {
            0 if !fields.is_empty() => drop(fields.remove(random.below(fields.len()))),
            1 => fields.push(((*random.choose(NAMES)).to_owned(), random_node(random, depth))),
            2 if fields.len() > 1 => fields.swap(0, 1),
            _ if !fields.is_empty() => {
                let position = random.below(fields.len());
                change(&mut fields[position].1, random, depth + 1);
            }
            _ => {}
        },
        Node::Items(items) => match random.below(5) {
            0 => items.truncate(random.below(items.len() + 1)),
            1 => items.push(random_node(random, depth)),
            _ if !items.is_empty() => {
                let position = random.below(items.len());
                change(&mut items[position], random, depth + 1);
            }
            _ => {}
        },
        Node::Leaf(_) => *node = random_node(random, depth),
    }
}

fn built(node: &Node) -> ValueBuf {
    let mut out = frond_doc::DocumentBuilder::new();
    match node {
        Node::Leaf(value) => value.clone(),
        Node::Fields(fields) => {
            fields.iter().for_each(|(name, node)| {
                out.append(name, built(node).as_value());
            });
            ValueBuf::from(out.build())
        }
        Node::Items(items) => {
            out.begin_array("a");
            items.iter().for_each(|node| {
                out.push(built(node).as_value());
            });
            out.end();
            out.build().get("a").unwrap().to_buf()
        }
    }
}

fn document_of(node: &Node) -> DocumentBuf {
    built(node).as_value().as_document().unwrap().to_buf()
}

#[test]
fn a_description_applied_to_the_old_document_gives_the_new_one() {
    let mut described = 0;
    for_seeds(4000, |mut random| {
        let mut node = random_fields(&mut random, 0);
        let before = document_of(&node);
        for _ in 0..1 + random.below(3) {
            change(&mut node, &mut random, 0);
        }
        let after = document_of(&node);
        if let Some(description) = describe(before.view(), after.view()) {
            assert_eq!(apply(&before, &description), fields(&after), "{description:?}");
            assert_eq!(applied(before.view(), description.view()), Some(after));
            described += 1;
        }
    });
    assert_met("descriptions", described, 1_000);
}

#[test]
fn descriptions_are_as_mongodb_has_them() {
    let cases = [
        (
            document! { "_id": 1, "a": 1, "b": &document! { "c": 1, "d": 2 } },
            document! { "_id": 1, "a": 2, "b": &document! { "c": 1, "d": 3 }, "e": 4 },
            Some(document! { "a": 2, "b.d": 3, "e": 4 }),
        ),
        (document! { "_id": 1, "a": 1, "b": 2 }, document! { "_id": 1, "b": 2, "a": 1 }, None),
        (
            document! { "_id": 1, "a.b": 1, "z": "zzz" },
            document! { "_id": 1, "a.b": 2, "z": "zzz" },
            Some(document! { "a.b": 2 }),
        ),
        (
            document! { "_id": 1, "n": &document! { "0": 1, "z": "zzz" } },
            document! { "_id": 1, "n": &document! { "0": 2, "z": "zzz" } },
            Some(document! { "n.0": 2 }),
        ),
        // Which of the two changed?
        (
            document! { "_id": 1, "a": &document! { "b": 1, "z": "zzz" }, "a.b": 1 },
            document! { "_id": 1, "a": &document! { "b": 2, "z": "zzz" }, "a.b": 2 },
            None,
        ),
    ];
    for (before, after, expected) in cases {
        let description = describe(before.view(), after.view());
        let updated = description.as_ref().and_then(|it| it.get("updatedFields"));
        let updated = updated.map(|it| it.as_document().unwrap().to_buf());
        assert_eq!(updated, expected, "{before:?} {after:?}");
    }
}

#[test]
fn paths_that_could_be_read_in_two_ways_have_their_parts_besides() {
    let before = r#"{"_id": 1, "7": 1, "home.town": "Rome", "a": {"1": 1, "z": "zz"}, "b": [{"x": 1}],
        "r": [0, {"0": [1, 2, 3], "$z": 1}], "gone": {"x.y": 1, "z": "zz"}}"#;
    let after = r#"{"_id": 1, "7": 2, "home.town": "Oslo", "a": {"1": 2, "z": "zz"}, "b": [{"x": 2}],
        "r": [0, {"0": [9], "$z": 1}], "gone": {"z": "zz"}}"#;
    let [before, after] = [before, after].map(|it| extended_json::parse(it).unwrap());
    let description = describe(before.view(), after.view()).expect("described");
    let expected = r#"{"updatedFields": {"7": 2, "home.town": "Oslo", "a.1": 2, "b.0.x": 2,
            "r.1.0.0": 9},
        "removedFields": ["gone.x.y"], "truncatedArrays": [{"field": "r.1.0", "newSize": 1}],
        "disambiguatedPaths": {"home.town": ["home.town"], "a.1": ["a", "1"],
            "r.1.0.0": ["r", 1, "0", 0], "r.1.0": ["r", 1, "0"], "gone.x.y": ["gone", "x.y"]}}"#;
    assert_eq!(description, extended_json::parse(expected).unwrap());
    assert_eq!(applied(before.view(), description.view()), Some(after));
}

/// A document of pieces, and the store that has them.
mod pieces {
    use frond_doc::pieces::{LargeDocument, build};
    use frond_store::ChunkStore;
    use frond_store::memory::MemoryStore;
    use frond_tree::TreeFormat;

    use super::super::describe_large;
    use super::*;

    fn built_large(store: &dyn ChunkStore, document: &DocumentBuf) -> LargeDocument {
        build(store, TreeFormat::new(1), document.view()).unwrap().expect("it is large")
    }

    fn text(random: &mut Random) -> Node {
        let bytes = *random.choose(&[5, 5, 300, 3000]);
        let bytes = "x".repeat(random.below(bytes));
        Node::Leaf(Value::String(&format!("{bytes}{}", random.below(1000))).to_buf())
    }

    fn items(random: &mut Random, count: usize) -> Node {
        let item = |random: &mut Random, number: usize| match random.below(3) {
            0 => text(random),
            1 => Node::Leaf(Value::Int32(number as i32).to_buf()),
            _ => Node::Fields(vec![("n".to_owned(), text(random)), ("m".to_owned(), text(random))]),
        };
        Node::Items((0..count).map(|number| item(random, number)).collect())
    }

    fn fields_of(random: &mut Random, count: usize) -> Node {
        let name = |number: usize| format!("field{number}");
        Node::Fields((0..count).map(|number| (name(number), text(random))).collect())
    }

    fn large(random: &mut Random) -> Node {
        let mut fields = vec![("_id".to_owned(), Node::Leaf(Value::Int32(1).to_buf()))];
        fields.push(("long".to_owned(), Node::Leaf(Value::String(&"y".repeat(33_000)).to_buf())));
        for name in NAMES.iter().take(5) {
            let node = match random.below(5) {
                0 => text(random),
                1 => random_node(random, 0),
                2 => {
                    let count = random.below(1500);
                    items(random, count)
                }
                3 => {
                    let count = random.below(300);
                    fields_of(random, count)
                }
                _ => Node::Fields(vec![("deep".to_owned(), items(random, 300))]),
            };
            fields.push(((*name).to_owned(), node));
        }
        Node::Fields(fields)
    }

    /// As `change`, but deep in what is long it changes ends and middles.
    fn change_large(node: &mut Node, random: &mut Random) {
        match node {
            Node::Items(items) if !items.is_empty() && random.one_in(2) => {
                let at = *random.choose(&[0, items.len() / 2, items.len() - 1]);
                match random.below(3) {
                    0 => drop(items.remove(at)),
                    1 => items.insert(at, text(random)),
                    _ => items.push(text(random)),
                }
            }
            Node::Fields(fields) if !fields.is_empty() && !random.one_in(4) => {
                let at = random.below(fields.len());
                change_large(&mut fields[at].1, random);
            }
            other => change(other, random, 1),
        }
    }

    #[test]
    fn a_description_by_pieces_gives_the_new_document() {
        let mut described = 0;
        for_seeds(300, |mut random| {
            let store = MemoryStore::new();
            let mut node = large(&mut random);
            let before = document_of(&node);
            for _ in 0..1 + random.below(3) {
                let Node::Fields(fields) = &mut node else { unreachable!() };
                // Its key stays.
                let at = 1 + random.below(fields.len() - 1);
                match random.below(8) {
                    0 if 4 < fields.len() => drop(fields.remove(at)),
                    _ => change_large(&mut fields[at].1, &mut random),
                }
            }
            let after = document_of(&node);
            let is_large =
                |it: &DocumentBuf| frond_doc::pieces::LARGE_DOCUMENT_BYTES < it.as_bytes().len();
            if !is_large(&before) || !is_large(&after) {
                return;
            }
            let (old, new) = (built_large(&*store, &before), built_large(&*store, &after));
            let by_pieces = describe_large(&*store, &old, &new).unwrap();
            let whole = describe(before.view(), after.view());
            if let Some(description) = &by_pieces {
                assert_eq!(apply(&before, description), fields(&after), "{description:?}");
                assert!(applied(before.view(), description.view()).as_ref() == Some(&after));
                described += 1;
            }
            // Where elements moved more may be shown, never less than is there.
            assert!(by_pieces.is_some() || whole.is_none_or(|it| 1000 < it.as_bytes().len()));
        });
        assert_met("descriptions by pieces", described, 150);
    }
}
