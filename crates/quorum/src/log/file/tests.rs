//! A log that is appended to, crashes and is opened again holds what was synced: a model in memory
//! says what that is.

use std::collections::BTreeSet;

use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use super::*;
use crate::configuration::Change;
use crate::entry::Content;
use crate::ids::Term;
use crate::log::format::record_bytes;
use crate::log::{Ballot, Continuation, VOTE_FILE_NAME};

const ALL: u64 = u64::MAX;

fn created(disk: &SimDisk) {
    let beginning = Configuration::of([1, 2, 3].map(MemberId));
    FileLog::create(&disk.machine(), MemberId(2), SetId(5), &beginning).expect("made");
}

fn open(disk: &SimDisk) -> (FileLog, Recovered) {
    FileLog::open(&disk.machine()).expect("it opens")
}

/// The file without what is reserved at its end.
fn contents(disk: &SimDisk) -> Vec<u8> {
    let mut contents = disk.contents("quorum-log").expect("the log");
    let used = contents.iter().rposition(|byte| *byte != RESERVED).expect("it has a head");
    contents.truncate(used + 1);
    contents
}

fn entry(index: u64, term: u64, bytes: Vec<u8>) -> Entry {
    let content = match bytes.len() {
        9 => Content::Change(Change::AddLearner(MemberId(100 + index))),
        _ => Content::Data(bytes.into()),
    };
    Entry { index: EntryIndex(index), term: Term(term), content }
}

/// Returns a batch that a member could append next.
fn next_batch(random: &mut Random, ballot: &mut Ballot, entries: &mut Vec<Entry>) -> Batch {
    let mut batch = Batch::default();
    if random.one_in(3) {
        ballot.term.0 += random.below(2) as u64;
        ballot.vote = Some(MemberId(1 + random.below(3) as u64));
        let known = entries.len() as u64;
        ballot.committed.0 += random.below((known - ballot.committed.0) as usize + 1) as u64;
        batch.ballot = Some(*ballot);
    }
    let mut count = random.below(4);
    if random.one_in(4) {
        // A new leader: what was not committed may be replaced.
        count += 1;
        ballot.term.0 += 1;
        batch.ballot = Some(*ballot);
        let kept = ballot.committed.0 as usize;
        entries.truncate(kept + random.below(entries.len() - kept + 1));
    }
    for _ in 0..count {
        let bytes = random.below(200);
        let made = entry(entries.len() as u64 + 1, ballot.term.0, random.bytes(bytes));
        entries.push(made.clone());
        batch.entries.push(made);
    }
    batch
}

/// Reads the entries up to `before`; the beginning of the log may have been compacted away.
fn read_all(log: &FileLog, recovered: &Recovered, before: usize) -> Vec<Entry> {
    assert!(recovered.before().0 as usize <= before);
    match recovered.last() {
        last if last.0 as usize == before => Vec::new(),
        last => log.read(EntryIndex(before as u64 + 1), last.next(), ALL).expect("it reads"),
    }
}

fn without_doubt(recovered: &Recovered) -> Ballot {
    Ballot { doubt: None, ..recovered.ballot }
}

/// Each state that a batch led to, and whether it was synced.
#[test]
fn synced_entries_survive_any_crash() {
    for_seeds(300, |mut random| {
        let mut disk = SimDisk::new(random.next());
        created(&disk);
        let (mut ballot, mut entries) = (Ballot::default(), Vec::new());
        // The number of them that may be cut.
        let mut gone = 0;
        for _ in 0..4 {
            let (log, recovered) = open(&disk);
            let known = (without_doubt(&recovered), read_all(&log, &recovered, gone));
            assert_eq!(known, (ballot, entries[gone..].to_vec()));
            assert_eq!(recovered.member, MemberId(2));
            assert_eq!(recovered.beginning.voters.len(), 3);
            disk.crash_after(random.below(20) as u64);
            let mut possible = vec![(ballot, entries.clone())];
            let mut synced = 0;
            for _ in 0..12 {
                let batch = next_batch(&mut random, &mut ballot, &mut entries);
                possible.push((ballot, entries.clone()));
                if log.append(&batch).is_err() {
                    break;
                }
                if random.one_in(2) {
                    if log.sync().is_err() {
                        break;
                    }
                    synced = possible.len() - 1;
                    if random.one_in(3) {
                        gone = gone.max(random.below(ballot.committed.0 as usize + 1));
                        if log.compact(EntryIndex(gone as u64)).is_err() {
                            break;
                        }
                    }
                }
            }
            disk = if random.one_in(2) { disk.crash() } else { disk.kill() };
            let (log, recovered) = open(&disk);
            let found = without_doubt(&recovered);
            let behind = read_all(&log, &recovered, gone);
            let is_found = |(ballot, entries): &(Ballot, Vec<Entry>)| {
                ballot.committed == found.committed && entries.get(gone..) == Some(&behind)
            };
            let place = synced + possible[synced..].iter().position(is_found).expect("a state");
            // A vote is kept before what else its batch has.
            let is_vote = |(ballot, _): &(Ballot, Vec<Entry>)| {
                (ballot.term, ballot.vote) == (found.term, found.vote)
            };
            assert!(possible[place..].iter().any(is_vote), "{found:?}");
            (ballot, entries) = (found, possible.swap_remove(place).1);
        }
    });
}

#[test]
fn a_bit_that_turned_over_before_the_last_batch_is_damage() {
    let disk = SimDisk::new(1);
    created(&disk);
    let (log, _) = open(&disk);
    for index in 1..=3 {
        let batch = Batch { ballot: None, entries: vec![entry(index, 1, vec![7; 104])] };
        log.append(&batch).expect("appended");
        log.sync().expect("synced");
    }
    drop(log);
    let bytes = contents(&disk).len() - END_BYTES;
    let last = (bytes as u64 - record_bytes(104)) * 8;
    let mut random = Random::new(2);
    for _ in 0..200 {
        let bit = random.below(last as usize) as u64;
        disk.flip_bit("quorum-log", bit);
        assert!(FileLog::open(&disk.machine()).is_err(), "bit {bit}");
        disk.flip_bit("quorum-log", bit);
    }
    // The last batch isn't known to have been durable.
    disk.flip_bit("quorum-log", last + 8);
    let (log, recovered) = open(&disk);
    assert_eq!(recovered.last(), EntryIndex(2));
    assert_eq!(log.read(EntryIndex(1), EntryIndex(3), 1).expect("it reads").len(), 1);
}

/// Wherever it is cut off or damaged behind what the last record says to be durable, it is noted,
/// for as long as no vote says otherwise; and the vote stays.
#[test]
fn an_end_that_may_be_lost_is_doubted() {
    let disk = SimDisk::new(1);
    created(&disk);
    let (log, _) = open(&disk);
    let ballot = Ballot { term: Term(4), vote: Some(MemberId(3)), ..Ballot::default() };
    for index in 1..=3 {
        let entries = vec![entry(index, 4, vec![7; 44])];
        log.append(&Batch { ballot: Some(ballot), entries }).expect("appended");
        log.sync().expect("synced");
    }
    drop(log);
    let disk = disk.crash();
    assert_eq!(open(&disk).1.ballot, ballot);
    let whole = contents(&disk);
    let batch = (record_bytes(44) + record_bytes(16)) as usize;
    let doubted = Ballot { doubt: Some(Term(4)), ..ballot };
    for lost in 1..=2 * batch {
        disk.set_contents("quorum-log", &whole[..whole.len() - lost]);
        // Also at the next opening, of a log that ends well.
        for _ in 0..2 {
            assert_eq!(open(&disk).1.ballot, doubted, "{lost} bytes");
        }
        let (log, recovered) = open(&disk);
        let next = entry(recovered.last().0 + 1, 4, vec![7; 44]);
        let batch = Batch { ballot: Some(ballot), entries: vec![next] };
        log.append(&batch).and_then(|()| log.sync()).expect("appended");
        drop(log);
        assert_eq!(open(&disk).1.ballot, ballot);
    }
    for bit in (whole.len() - batch) * 8..whole.len() * 8 {
        disk.set_contents("quorum-log", &whole);
        disk.flip_bit("quorum-log", bit as u64);
        assert_eq!(open(&disk).1.ballot.doubt, Some(Term(4)), "bit {bit}");
    }
}

/// What is behind the end is full of one byte, so that a block that reads as zeros, or as anything
/// else, isn't taken for room.
#[test]
fn reserved_space_with_other_bytes_is_doubted() {
    let disk = SimDisk::new(1);
    created(&disk);
    let (log, _) = open(&disk);
    let ballot = Ballot { term: Term(4), vote: Some(MemberId(3)), ..Ballot::default() };
    let (mut lengths, mut bytes) = (BTreeSet::new(), 0);
    for index in 1..=12 {
        let entries = vec![entry(index, 4, vec![7; 44])];
        log.append(&Batch { ballot: Some(ballot), entries }).expect("appended");
        log.sync().expect("synced");
        let whole = disk.contents("quorum-log").expect("the log");
        assert!(bytes <= whole.len(), "it becomes no shorter");
        bytes = whole.len();
        lengths.insert(bytes);
    }
    drop(log);
    assert!((2..7).contains(&lengths.len()), "not with each batch: {lengths:?}");
    let whole = disk.contents("quorum-log").expect("the log");
    let end = contents(&disk).len();
    assert!(end < whole.len(), "something is reserved");
    let ballot_of = |bytes: &[u8]| {
        let disk = SimDisk::new(2);
        created(&disk);
        disk.set_contents("quorum-log", bytes);
        open(&disk).1.ballot
    };
    // Less of it is as well, and so is none: nothing is lost with it.
    for kept in end..=whole.len() {
        assert_eq!(ballot_of(&whole[..kept]), ballot, "{kept} bytes");
    }
    for place in end..whole.len() {
        for other in [0, !(1 << (place % 8))] {
            let mut bytes = whole.clone();
            bytes[place] = other;
            assert_eq!(ballot_of(&bytes).doubt, Some(Term(4)), "{other} at {place}");
        }
    }
}

#[test]
fn a_write_for_which_there_was_no_room_leaves_no_doubt() {
    for_seeds(100, |mut random| {
        let disk = SimDisk::new(random.next());
        created(&disk);
        let (log, recovered) = open(&disk);
        let (mut ballot, mut entries) = (recovered.ballot, Vec::new());
        for _ in 0..random.below(6) {
            log.append(&next_batch(&mut random, &mut ballot, &mut entries)).expect("there is room");
            log.sync().expect("it syncs");
        }
        let known = entries.len();
        entries.push(entry(known as u64 + 1, ballot.term.0, random.bytes(500)));
        disk.fill_after(random.below(300) as u64);
        let batch = Batch { entries: entries.split_off(known), ballot: None };
        assert!(log.append(&batch).expect_err("there is no room").is_full());
        log.append(&Batch::default()).expect_err("it takes nothing any more");
        disk.make_room();
        let (log, recovered) = open(&disk.kill());
        assert_eq!(recovered.ballot, ballot);
        assert_eq!(read_all(&log, &recovered, 0), entries);
    });
}

#[test]
fn a_log_is_made_once_and_whole() {
    for operations in 0.. {
        let disk = SimDisk::new(operations);
        disk.crash_after(operations);
        let beginning = Configuration::of([MemberId(2)]);
        let made = FileLog::create(&disk.machine(), MemberId(2), SetId(5), &beginning);
        let disk = disk.crash();
        if FileLog::exists(&disk.machine()).expect("it lists") {
            open(&disk);
        } else {
            assert!(made.is_err());
            created(&disk);
            open(&disk);
        }
        let again = FileLog::create(&disk.machine(), MemberId(3), SetId(5), &beginning);
        assert!(again.is_err());
        if made.is_ok() {
            break;
        }
    }
}

/// A member's knowledge of the set is the same after a compaction, wherever the log is cut.
#[test]
fn a_cut_leaves_terms_members_and_ballot_as_they_were() {
    for_seeds(100, |mut random| {
        let disk = SimDisk::new(random.next());
        created(&disk);
        let (log, _) = open(&disk);
        let mut ballot = Ballot::default();
        for index in 1..=20 {
            ballot.term.0 += random.below(2) as u64;
            ballot.committed = EntryIndex(index - 1);
            let bytes = if index % 7 == 0 { 9 } else { 30 };
            let entries = vec![entry(index, ballot.term.0, random.bytes(bytes))];
            let written = random.one_in(2).then_some(ballot);
            log.append(&Batch { ballot: written, entries }).expect("appended");
        }
        log.sync().expect("synced");
        drop(log);
        let (log, before) = open(&disk);
        let up_to = EntryIndex(before.ballot.committed.0.min(random.below(21) as u64));
        log.compact(up_to).expect("cut");
        // It goes on in the new file.
        let more = Batch { ballot: None, entries: vec![entry(21, ballot.term.0, vec![1; 30])] };
        log.append(&more).and_then(|()| log.sync()).expect("appended");
        drop(log);
        let (log, after) = open(&disk);
        assert_eq!((after.before(), after.last()), (up_to, EntryIndex(21)));
        assert_eq!((after.member, after.set), (before.member, before.set));
        assert_eq!(after.ballot, before.ballot);
        for index in (up_to.0..=20).map(EntryIndex) {
            assert_eq!(after.terms.of(index), before.terms.of(index));
            assert_eq!(after.configuration(index), before.configuration(index));
        }
        assert_eq!(log.read(EntryIndex(21), EntryIndex(22), 1).expect("it reads"), more.entries);
    });
}

#[test]
fn a_cut_is_worth_it_where_it_gives_back_much_and_leaves_enough() {
    let disk = SimDisk::new(1);
    created(&disk);
    let (log, _) = open(&disk);
    for index in 1..=9 {
        let batch = Batch { ballot: None, entries: vec![entry(index, 1, vec![7; 104])] };
        log.append(&batch).and_then(|()| log.sync()).expect("appended");
    }
    // A record takes 160 bytes: two are at least kept, and two at least given back.
    let place = |up_to| {
        let place = log.compaction_point(EntryIndex(up_to), EntryIndex(up_to), u64::MAX);
        place.map(|index| index.0)
    };
    assert_eq!(
        [0, 1, 2, 5, 7, 8, 9].map(place),
        [None, None, Some(2), Some(5), Some(7), Some(7), Some(7)]
    );
    // Entries that other members lack are kept up to a limit: three records here, four bytes short
    // of a fourth.
    let place = |bytes_max| log.compaction_point(EntryIndex(9), EntryIndex::ZERO, bytes_max);
    assert_eq!([u64::MAX, 636].map(place), [None, Some(EntryIndex(5))]);
    let bytes = || contents(&disk).len() as u64;
    let before = bytes();
    log.compact(EntryIndex(7)).expect("cut");
    assert_eq!(before - bytes(), 7 * record_bytes(104));
    assert_eq!(log.compaction_point(EntryIndex(9), EntryIndex(9), u64::MAX), None);
    log.compact(EntryIndex(7)).expect("nothing is left to be done");
}

#[test]
fn a_log_that_is_replaced_goes_on_behind_what_another_has() {
    let (disk, other) = (SimDisk::new(1), SimDisk::new(2));
    created(&disk);
    created(&other);
    let (log, _) = open(&other);
    let entries = (1..=6).map(|index| entry(index, 1 + index / 4, vec![7; 104])).collect();
    log.append(&Batch { ballot: None, entries }).and_then(|()| log.sync()).expect("appended");
    log.compact(EntryIndex(2)).expect("cut");
    let behind = |index| log.behind(EntryIndex(index)).expect("it is there");
    assert_eq!([2, 3, 4, 6].map(|index| behind(index).term.0), [1, 1, 2, 2]);

    let (own, _) = open(&disk);
    let vote = Some(MemberId(2));
    let ballot = Ballot { term: Term(3), vote, committed: EntryIndex(1), doubt: None };
    let entries = vec![entry(1, 1, vec![7; 9]), entry(2, 1, vec![7; 9])];
    own.append(&Batch { ballot: Some(ballot), entries }).and_then(|()| own.sync()).expect("there");
    drop(own);
    let (_, recovered) = open(&disk);
    assert_eq!(recovered.continuation(&behind(2)), Continuation::AsItIs);
    assert_eq!(recovered.continuation(&behind(5)), Continuation::Replaced(ballot));
    FileLog::replace(&disk.machine(), recovered.member, recovered.set, behind(5), ballot)
        .expect("replaced");
    let (own, recovered) = open(&disk.crash());
    assert_eq!((recovered.before(), recovered.last()), (EntryIndex(5), EntryIndex(5)));
    assert_eq!(recovered.continuation(&behind(4)), Continuation::Further);
    let Ballot { term, vote, committed, .. } = recovered.ballot;
    assert_eq!((term, vote, committed), (Term(3), Some(MemberId(2)), EntryIndex(5)));
    let next = Batch { ballot: None, entries: vec![entry(6, 2, vec![7; 9])] };
    own.append(&next).and_then(|()| own.sync()).expect("the next one");
}

/// Damage is reported once: the next member in its place doesn't hear of it again.
#[test]
fn a_damaged_vote_goes_with_its_member() {
    let disk = SimDisk::new(1);
    created(&disk);
    let ballot = Ballot { term: Term(3), vote: Some(MemberId(1)), ..Ballot::default() };
    let (log, _) = open(&disk);
    log.append(&Batch { ballot: Some(ballot), ..Batch::default() }).expect("appended");
    drop(log);
    for bit in [3 * 8, 20 * 8 + 1, 46 * 8 + 7] {
        disk.flip_bit(VOTE_FILE_NAME, bit);
        assert!(FileLog::open(&disk.machine()).is_err());
        let (before, term) = (EntryIndex(7), Term(3));
        let configuration = Configuration::of([1, 3, 9].map(MemberId));
        let beginning = Beginning { before, term, configuration };
        FileLog::replace(&disk.machine(), MemberId(9), SetId(5), beginning, Ballot::default())
            .expect("replaced");
        open(&disk);
    }
}
