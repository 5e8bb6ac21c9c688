//! Goal: readers see the newest version of a key up to their Sequence, in order, and removed or
//! cleared entries leave nothing. Method: a memtable of known writes, read within windows of
//! Sequences and between bounds.

use super::*;
use crate::log::record::Record;

const TREE: TreeId = TreeId(4);

fn put(memtable: &Memtable, sequence: u64, writes: &[(&'static str, Option<&'static str>)]) {
    let writes: Vec<OverlayEntry> =
        writes.iter().map(|(key, value)| (Bytes::from(*key), value.map(Value::inline))).collect();
    insert(memtable, TREE, sequence, writes);
}

fn insert(memtable: &Memtable, tree: TreeId, sequence: u64, writes: Vec<OverlayEntry>) {
    let record = Record { writes: vec![(tree, writes)], ..Record::default() };
    memtable.insert(Sequence(sequence), &record.encode().into());
}

fn sample() -> Memtable {
    let memtable = Memtable::default();
    put(&memtable, 1, &[("a", Some("a1")), ("b", Some("b1")), ("c", Some("c1"))]);
    put(&memtable, 2, &[("b", Some("b2"))]);
    put(&memtable, 3, &[("a", None), ("d", Some("d3"))]);
    insert(&memtable, TreeId(5), 4, vec![(Bytes::from("a"), None)]);
    memtable
}

fn window(after: u64, up_to: u64) -> Window {
    Window { after: Sequence(after), up_to: Sequence(up_to) }
}

fn show(entry: &OverlayEntry) -> String {
    let key = String::from_utf8_lossy(&entry.0);
    match entry.1.as_ref().map(|value| &value.content) {
        Some(Content::Inline(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => format!("-{key}"),
    }
}

fn check(after: u64, up_to: u64, bounds: (&str, &str), expected: &str) {
    let memtable = sample();
    let bound = |text: &str| (!text.is_empty()).then(|| Bytes::copy_from_slice(text.as_bytes()));
    let bounds = Bounds { start: bound(bounds.0), end: bound(bounds.1) };
    for direction in [Direction::Ascending, Direction::Descending] {
        let mut found: Vec<OverlayEntry> = Vec::new();
        memtable.batch(TREE, &bounds, direction, window(after, up_to), 100, &mut found);
        if direction == Direction::Descending {
            found.reverse();
        }
        let found: Vec<String> = found.iter().map(show).collect();
        assert_eq!(found.join(" "), expected, "{direction:?}");
    }
}

#[test]
fn ranges_show_the_newest_entry_within_the_window() {
    check(0, 9, ("", ""), "-a b2 c1 d3");
    check(0, 1, ("", ""), "a1 b1 c1");
    check(0, 2, ("", ""), "a1 b2 c1");
    check(1, 9, ("", ""), "-a b2 d3");
    check(2, 2, ("", ""), "");
    check(0, 9, ("b", "d"), "b2 c1");
    check(0, 9, ("d", "b"), "");
}

#[test]
fn batches_end_where_asked_and_report_that_there_is_more() {
    let memtable = sample();
    for direction in [Direction::Ascending, Direction::Descending] {
        let mut found: Vec<OverlayEntry> = Vec::new();
        let all = Bounds::all();
        assert!(memtable.batch(TREE, &all, direction, window(0, 9), 2, &mut found));
        assert_eq!(found.len(), 2);
    }
}

#[test]
fn point_reads_and_the_journal_follow_the_window() {
    let memtable = sample();
    let get = |key: &str, after, up_to| {
        memtable
            .get(TREE, key.as_bytes(), window(after, up_to))
            .map(|value| show(&(Bytes::copy_from_slice(key.as_bytes()), value)))
    };
    assert_eq!(get("b", 0, 9).as_deref(), Some("b2"));
    assert_eq!(get("b", 0, 1).as_deref(), Some("b1"));
    assert_eq!(get("b", 2, 9), None);
    assert_eq!(get("a", 0, 9).as_deref(), Some("-a"));
    assert_eq!(get("bb", 0, 9), None);
    assert!(memtable.touches(TREE, window(2, 9)));
    assert!(!memtable.touches(TREE, window(3, 9)));
    assert_eq!(memtable.trees(), [TREE, TreeId(5)]);
    let mut keys = Vec::new();
    memtable.touched_keys(TREE, window(1, 3), usize::MAX, &mut keys);
    assert_eq!(keys, ["b", "a", "d"]);
    memtable.check().unwrap();
}

#[test]
fn the_journal_is_in_order_whatever_order_transactions_come_in() {
    let memtable = Memtable::default();
    for sequence in [4, 6, 5, 9, 2, 1, 7, 3, 8] {
        let key = Bytes::from(sequence.to_string());
        insert(&memtable, TREE, sequence, vec![(key, None)]);
        memtable.check().unwrap();
    }
    let mut keys = Vec::new();
    memtable.touched_keys(TREE, window(0, 9), usize::MAX, &mut keys);
    assert_eq!(keys, ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    memtable.remove(Sequence(1));
    memtable.remove(Sequence(9));
    assert!(memtable.touches(TREE, window(1, 2)) && memtable.touches(TREE, window(7, 8)));
    assert!(!memtable.touches(TREE, window(0, 1)) && !memtable.touches(TREE, window(8, 9)));
    assert_eq!(memtable.writes_max(TREE), 9);
}

#[test]
fn a_removed_transaction_leaves_nothing() {
    let memtable = sample();
    let bytes = memtable.bytes();
    let writes = [(Bytes::from("b"), Some(Value::inline("b7"))), (Bytes::from("z"), None)];
    insert(&memtable, TREE, 7, writes.to_vec());
    assert!(memtable.touches(TREE, window(3, 9)));
    memtable.remove(Sequence(7));
    assert_eq!(memtable.bytes(), bytes);
    assert!(!memtable.touches(TREE, window(3, 9)));
    assert_eq!(memtable.get(TREE, b"z", window(0, 9)), None);
    memtable.check().unwrap();
}

#[test]
fn a_cleared_memtable_keeps_no_payload() {
    let memtable = sample();
    let entry = (Bytes::from("b"), Some(Value::inline("b7")));
    let record = Record { writes: vec![(TREE, vec![entry])], ..Record::default() };
    let payload = Bytes::from(record.encode());
    memtable.insert(Sequence(7), &payload);
    assert!(!payload.is_unique());
    memtable.clear();
    assert!(payload.is_unique(), "whatever the skip list keeps for how long");
    assert!(memtable.trees().is_empty());
}

/// A count looks at entries without a lock, and one of them may be refused meanwhile.
#[test]
fn counts_of_a_refused_entry_are_not_used_for_others() {
    let memtable = Memtable::default();
    for (sequence, key) in [(1, "a"), (2, "b")] {
        insert(&memtable, TREE, sequence, vec![(Bytes::from(key), Some(Value::inline("v")))]);
    }
    let count = || memtable.count(TREE, &Bounds::all(), window(0, 9), None, usize::MAX);
    let mut unknown = count().unknown;
    unknown.truncate(1);
    unknown[0].entry.stored.note_replaces(true);
    memtable.remove(Sequence(1));
    memtable.note_replaces(TREE, &unknown);
    let counted = count();
    assert_eq!((counted.unknown.len(), counted.change), (1, 0), "of b nothing is known");
}

#[test]
fn count_changes_are_computed_once_and_add_up_in_any_window() {
    let memtable = Memtable::default();
    // Enough for several blocks; keys that come, stay, go and come again.
    for sequence in 1..=400_u64 {
        let key = Bytes::from(format!("{:02}", sequence * 7 % 60));
        let value = (sequence % 3 > 0).then(|| Value::inline("v"));
        insert(&memtable, TREE, sequence, vec![(key, value)]);
    }
    let all = Bounds::all();
    let count = |window| memtable.count(TREE, &all, window, None, usize::MAX);
    assert_eq!((count(window(0, 400)).unknown.len(), count(window(0, 400)).change), (400, 0));
    let mut unknown = count(window(0, 250)).unknown;
    assert_eq!(unknown.len(), 250);
    for Unknown { entry, is_oldest } in &mut unknown {
        let before = Window { after: Sequence::ZERO, up_to: entry.sequence.preceding() };
        let older = memtable.get(TREE, entry.stored.key(), before);
        let had = older.as_ref().is_some_and(|value| value.is_some());
        match entry.stored.replaces() {
            Some(known) => assert_eq!(known, had),
            None => assert!(older.is_none() || !*is_oldest),
        }
        entry.stored.note_replaces(had);
    }
    memtable.note_replaces(TREE, &unknown);
    assert_eq!(count(window(0, 400)).unknown.len(), 150);
    for up_to in [1, 60, 133, 250] {
        let mut found: Vec<OverlayEntry> = Vec::new();
        memtable.batch(TREE, &all, Direction::Ascending, window(0, up_to), 1000, &mut found);
        let expected = found.iter().filter(|(_, value)| value.is_some()).count() as i64;
        assert_eq!(count(window(0, up_to)).change, expected, "{up_to}");
        let first = count(window(0, up_to / 2)).change;
        assert_eq!(first + count(window(up_to / 2, up_to)).change, expected, "{up_to}");
    }
    // In parts: each entry once.
    let (mut start, mut passed) = (None, 0);
    loop {
        let counted = memtable.count(TREE, &all, window(250, 400), start, 10);
        passed += counted.unknown.len();
        start = counted.rest;
        if start.is_none() {
            break;
        }
    }
    assert_eq!(passed, 150);
    let bounds = Bounds { start: Some(Bytes::from("2")), end: Some(Bytes::from("3")) };
    let within = memtable.count(TREE, &bounds, window(250, 400), None, usize::MAX).unknown;
    let keys: Vec<&[u8]> = within.iter().map(|unknown| unknown.entry.stored.key()).collect();
    assert!(!keys.is_empty() && keys.iter().all(|key| key.starts_with(b"2")), "{keys:?}");
}
