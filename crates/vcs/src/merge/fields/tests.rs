//! Three sides and what they merge to, with either preference; a test for each rule of the head.

use frond_doc::document;

use super::*;

type Given<'a> = Option<&'a DocumentBuf>;

/// Merges with either preference: `expected` is what ours and theirs give.
fn check(sides: [Given<'_>; 3], expected: [Given<'_>; 2], conflict: Option<&[&str]>) {
    let [base, ours, theirs] = sides.map(|side| side.map(DocumentBuf::view));
    for (prefer, expected) in [(Side::Ours, expected[0]), (Side::Theirs, expected[1])] {
        let merged = merge_documents(base, ours, theirs, prefer);
        assert_eq!(merged.document.as_ref(), expected, "preferring {prefer:?}");
        let found = merged.conflict.as_deref();
        let paths = conflict.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(found.map(<[String]>::to_vec), paths, "preferring {prefer:?}");
        // The other way round the same comes out, with the other preference.
        let other = if prefer == Side::Ours { Side::Theirs } else { Side::Ours };
        let turned = merge_documents(base, theirs, ours, other);
        assert_eq!(turned, merged, "turned round, preferring {prefer:?}");
    }
}

fn clean(sides: [Given<'_>; 3], expected: Given<'_>) {
    check(sides, [expected, expected], None);
}

#[test]
fn different_fields_merge_in_the_order_of_who_reordered() {
    let base = document! { "_id": 1_i32, "a": 1_i32, "b": 1_i32, "gone": 0_i32, "too": 0_i32 };
    let ours = document! { "_id": 1_i32, "new": 5_i32, "b": 1_i32, "a": 2_i32, "too": 0_i32 };
    let theirs =
        document! { "_id": 1_i32, "a": 1_i32, "b": 3_i32, "gone": 0_i32, "x": 7_i32, "y": 8_i32 };
    let merged = document! {
        "_id": 1_i32, "new": 5_i32, "b": 3_i32, "a": 2_i32, "x": 7_i32, "y": 8_i32
    };
    clean([Some(&base), Some(&ours), Some(&theirs)], Some(&merged));
}

#[test]
fn equal_changes_agree() {
    let base = document! { "_id": 1_i32, "a": 1_i32, "b": 1_i32 };
    let ours = document! { "_id": 1_i32, "a": 2_i32, "b": 1_i32, "c": 3_i32 };
    let theirs = document! { "_id": 1_i32, "a": 2_i32, "c": 3_i32 };
    let merged = document! { "_id": 1_i32, "a": 2_i32, "c": 3_i32 };
    clean([Some(&base), Some(&ours), Some(&theirs)], Some(&merged));
}

#[test]
fn one_field_changed_differently_conflicts() {
    let base = document! { "_id": 1_i32, "a": 1_i32, "b": 1_i32 };
    let ours = document! { "_id": 1_i32, "a": 2_i32, "b": 1_i32 };
    let theirs = document! { "_id": 1_i32, "a": 3_i32, "b": 4_i32 };
    let with_ours = document! { "_id": 1_i32, "a": 2_i32, "b": 4_i32 };
    let with_theirs = document! { "_id": 1_i32, "a": 3_i32, "b": 4_i32 };
    let expected = [Some(&with_ours), Some(&with_theirs)];
    check([Some(&base), Some(&ours), Some(&theirs)], expected, Some(&["a"]));
}

#[test]
fn removing_against_changing_a_field_conflicts() {
    let base = document! { "_id": 1_i32, "a": 1_i32 };
    let without = document! { "_id": 1_i32 };
    let changed = document! { "_id": 1_i32, "a": 2_i32 };
    let sides = [Some(&base), Some(&without), Some(&changed)];
    check(sides, [Some(&without), Some(&changed)], Some(&["a"]));
    let sides = [Some(&base), Some(&changed), Some(&without)];
    check(sides, [Some(&changed), Some(&without)], Some(&["a"]));
}

#[test]
fn documents_merge_in_turn_and_arrays_as_a_whole() {
    let part = |x: i32, y: i32| document! { "x": x, "y": y };
    let whole = |a: &DocumentBuf| document! { "_id": 1_i32, "a": a };
    let sides = [whole(&part(1, 1)), whole(&part(2, 1)), whole(&part(1, 3))];
    let merged = whole(&part(2, 3));
    clean([Some(&sides[0]), Some(&sides[1]), Some(&sides[2])], Some(&merged));

    let theirs = whole(&part(5, 3));
    let expected = [whole(&part(2, 3)), whole(&part(5, 3))];
    let sides = [Some(&sides[0]), Some(&sides[1]), Some(&theirs)];
    check(sides, [Some(&expected[0]), Some(&expected[1])], Some(&["a.x"]));

    let array = |first: i32, second: i32| {
        let mut builder = DocumentBuilder::new();
        builder.append("_id", Value::Int32(1)).begin_array("a");
        builder.push(Value::Int32(first)).push(Value::Int32(second)).end();
        builder.build()
    };
    let sides = [array(1, 1), array(2, 1), array(1, 3)];
    let expected = [Some(&sides[1]), Some(&sides[2])];
    check([Some(&sides[0]), Some(&sides[1]), Some(&sides[2])], expected, Some(&["a"]));
}

#[test]
fn documents_added_on_both_sides_merge_too() {
    let part = |name: &str| {
        let mut builder = DocumentBuilder::new();
        builder.append(name, Value::Int32(1));
        builder.build()
    };
    let base = document! { "_id": 1_i32 };
    let ours = document! { "_id": 1_i32, "a": &part("x") };
    let theirs = document! { "_id": 1_i32, "a": &part("y") };
    let merged = document! { "_id": 1_i32, "a": &document! { "x": 1_i32, "y": 1_i32 } };
    clean([Some(&base), Some(&ours), Some(&theirs)], Some(&merged));
    clean([None, Some(&ours), Some(&theirs)], Some(&merged));
    let differs = document! { "_id": 1_i32, "a": 5_i32 };
    let expected = [Some(&ours), Some(&differs)];
    check([None, Some(&ours), Some(&differs)], expected, Some(&["a"]));
}

#[test]
fn a_removed_document() {
    let base = document! { "_id": 1_i32, "a": 1_i32 };
    let changed = document! { "_id": 1_i32, "a": 2_i32 };
    clean([Some(&base), None, Some(&base)], None);
    clean([Some(&base), Some(&base), None], None);
    clean([Some(&base), None, None], None);
    check([Some(&base), None, Some(&changed)], [None, Some(&changed)], Some(&[]));
    check([Some(&base), Some(&changed), None], [Some(&changed), None], Some(&[]));
}

#[test]
fn the_id_never_conflicts() {
    let base = document! { "_id": 1_i32, "a": 1_i32 };
    let ours = document! { "_id": 1_i64, "a": 1_i32 };
    let theirs = document! { "_id": 1.0, "a": 2_i32 };
    let merged = document! { "_id": 1.0, "a": 2_i32 };
    clean([Some(&base), Some(&ours), Some(&theirs)], Some(&merged));
}

#[test]
fn rules_of_documents_and_fields() {
    let base = document! { "_id": 1_i32, "n": 1_i32, "a": 1_i32 };
    let ours = document! { "_id": 1_i32, "n": 5_i32, "a": 2_i32 };
    let theirs = document! { "_id": 1_i32, "n": 3_i32, "a": 2_i32 };
    let merge = |rules: &DocumentRules| {
        let sides = ThreeWay::new(&base, &ours, &theirs).map(|side| Some(side.view()));
        merge_by_rules(sides, Side::Ours, rules)
    };
    let mut rules = DocumentRules::default();
    rules.fields.insert("n".to_owned(), frond_db::inside::merge_rules::FieldRule::Delta);
    let merged = merge(&rules);
    assert_eq!(merged.document, Some(document! { "_id": 1_i32, "n": 7_i32, "a": 2_i32 }));
    assert_eq!(merged.conflict, None);
    rules.touched = true;
    assert_eq!(merge(&rules).conflict, Some(vec!["a".to_owned()]));
    rules.whole = true;
    assert_eq!(merge(&rules).conflict, Some(Vec::new()));
    assert_eq!(merge(&rules).document, Some(ours.clone()));
}

#[test]
fn a_pure_reordering_keeps_its_order() {
    let base = document! { "_id": 1_i32, "a": 1_i32, "b": 2_i32 };
    let ours = document! { "_id": 1_i32, "b": 2_i32, "a": 1_i32 };
    let theirs = document! { "_id": 1_i32, "a": 5_i32, "b": 2_i32 };
    let merged = document! { "_id": 1_i32, "b": 2_i32, "a": 5_i32 };
    clean([Some(&base), Some(&ours), Some(&theirs)], Some(&merged));
}
