//! Goal: a document that rots on the disk can be deleted and replaced, also by requests of many
//! statements and in transactions; everything else is as it was, and indexes are as if they were
//! built anew. Method: documents whose texts are found in pack files again. A bit of one is turned
//! over, in the outermost chunk of a large document, in an inner one, or in a leaf with small
//! documents; then it is written, and what is found is compared at once, after a restart and after
//! a collection. Texts differ from test to test and from seed to seed: the process keeps large
//! documents that were read whole, by their content, whichever directory they came from.

use frond_db::catalog::IndexSpec;
use frond_db::{
    DeleteStatement, Durability, Error, ErrorKind, FindRequest, Frond, FrondOptions,
    ReclaimOptions, UpdateStatement,
};
use frond_doc::{DocumentBuf, ValueBuf, document};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;

use crate::support::*;

const LARGE: [i32; 3] = [1, 4, 6];
const COUNT: i32 = 8;

fn open_on(disk: &SimDisk) -> Frond {
    frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens")
}

/// Text that a codec leaves as it is.
fn letters(random: &mut Random, count: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..count).map(|_| char::from(LETTERS[random.below(64)])).collect()
}

/// `_id` 1 is large, has a title in its outermost chunk and a long text in others.
fn made(id: i32, random: &mut Random) -> DocumentBuf {
    let count = if LARGE.contains(&id) { 120_000 } else { 30 };
    let (title, text) = (letters(random, 40), letters(random, count));
    json(&format!(
        "{{'_id': {id}, 'a': {}, 'u': {id}, 'tags': [{id}, {}], 'title': '{title}', \
          'inner': {{'text': '{text}', 'a': {id}}}}}",
        id % 3,
        id + 1
    ))
}

/// Turns over a bit wherever these bytes lie in a pack; returns in how many places they do.
fn try_flip(disk: &SimDisk, bytes: &[u8]) -> usize {
    let mut count = 0;
    let names = disk.machine().disk.list().expect("it answers");
    for name in names.into_iter().filter(|name| name.ends_with(".pack")) {
        let contents = disk.contents(&name).expect("it is there");
        let places = contents.windows(bytes.len()).enumerate().filter(|(_, part)| *part == bytes);
        for (at, _) in places {
            disk.flip_bit(&name, at as u64 * 8);
            count += 1;
        }
    }
    count
}

struct Rotten {
    disk: SimDisk,
    frond: Frond,
    documents: Vec<DocumentBuf>,
    is_committed: bool,
}

/// The place of the flipped bit.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Part {
    Outer,
    Inner,
}

impl Rotten {
    /// `test` makes its texts others than those of all tests beside it.
    fn new(test: &str, random: &mut Random) -> Rotten {
        let salt = test.bytes().fold(0, |salt: u64, byte| salt.rotate_left(8) ^ u64::from(byte));
        let mut texts = Random::new(random.next() ^ salt);
        let disk = SimDisk::new(random.next());
        let frond = open_on(&disk);
        let shop = Repository::open(&frond, "shop").expect("a name");
        for spec in [
            "{'key': {'a': 1}}",
            "{'key': {'tags': -1}}",
            "{'key': {'u': 1}, 'unique': true}",
            "{'key': {'inner.a': 1, 'tags': 1}, 'sparse': true}",
            "{'key': {'title': 'hashed'}}",
        ] {
            let spec = IndexSpec::parse(json(spec).view()).expect("a definition");
            shop.create_indexes("things", &[spec]).expect("an index");
        }
        let documents: Vec<DocumentBuf> = (0..COUNT).map(|id| made(id, &mut texts)).collect();
        let done = try_insert(&shop, "things", &documents);
        assert_eq!(done.count, COUNT as u64, "{:?}", done.errors);
        let is_committed = random.one_in(2);
        if is_committed {
            shop.commit("all", "Ada").expect("a commit");
        }
        frond.flush().expect("room");
        frond.close().expect("it closes");
        drop((shop, frond));
        let frond = open_on(&disk);
        Rotten { disk, frond, documents, is_committed }
    }

    fn shop(&self) -> Repository {
        Repository::open(&self.frond, "shop").expect("a name")
    }

    /// Turns over a bit of the document's title, or of its text, wherever that lies.
    fn rot(&self, id: i32, part: Part) {
        let document = &self.documents[id as usize];
        let inner = document.get("inner").and_then(|inner| inner.as_document()).expect("inner");
        let text = match part {
            Part::Outer => document.get("title").and_then(|title| title.as_str()),
            Part::Inner => inner.get("text").and_then(|text| text.as_str()),
        };
        let text = text.expect("a text").as_bytes();
        // Letters between which one chunk ends and the next begins lie in no pack together.
        let middle = text.len() / 2;
        let mut places = [middle, middle - 12].into_iter().map(|start| &text[start..start + 12]);
        assert!(places.any(|letters| try_flip(&self.disk, letters) > 0), "{id} {part:?}");
    }

    fn reopen(self) -> Rotten {
        // Damage that kept a tree from being folded is reported; the data lie in the log, or in
        // runs.
        let closed = self.frond.close();
        assert!(closed.as_ref().is_ok() || is_damaged(closed));
        let Rotten { disk, frond, documents, is_committed } = self;
        drop(frond);
        let frond = open_on(&disk);
        Rotten { disk, frond, documents, is_committed }
    }

    /// Checks that the expected documents are found by their `_id`s, whole, and that indexes file
    /// them and no others.
    fn check(self, expected: &[DocumentBuf]) {
        let mut rotten = self;
        for round in 0..3 {
            let shop = rotten.shop();
            let found = run(&shop, "things", &request("{}")).expect("it is whole");
            assert!(found == expected, "round {round}");
            let checked = shop.check_collection("things", &Default::default()).expect("whole");
            assert!(checked.is_valid(), "round {round}: {:?}", checked.errors());
            assert_eq!(checked.documents, expected.len() as u64);
            drop(shop);
            rotten = rotten.reopen();
            if round == 1 {
                let options = ReclaimOptions { thorough: true, ..ReclaimOptions::default() };
                let done = frond_vcs::reclaim(&rotten.frond, 0, options);
                // A commit has it still, and collections end there.
                assert!(done.as_ref().is_ok() || rotten.is_committed && is_damaged(done));
            }
        }
    }

    fn is_damaged(&self, id: i32) -> bool {
        is_damaged(run(&self.shop(), "things", &request(&format!("{{'_id': {id}}}"))))
    }
}

fn is_damaged<T>(read: Result<T, Error>) -> bool {
    read.is_err_and(|error| error.kind == ErrorKind::Damaged)
}

fn deletion(filter: &str, only_first: bool) -> DeleteStatement {
    let filter = json(filter);
    DeleteStatement { filter, only_first, hint: None, variables: None, collation: None }
}

fn replacement(filter: &str, by: &DocumentBuf) -> UpdateStatement {
    UpdateStatement::new(json(filter), ValueBuf::from(by.clone()))
}

fn without(documents: &[DocumentBuf], id: i32) -> Vec<DocumentBuf> {
    let (before, from) = documents.split_at(id as usize);
    [before, &from[1..]].concat()
}

#[test]
fn a_damaged_document_is_deleted() {
    for_seeds(24, |mut random| {
        let mut rotten = Rotten::new("deleted", &mut random);
        let id = *random.choose(&LARGE);
        let part = if random.one_in(2) { Part::Outer } else { Part::Inner };
        rotten.rot(id, part);
        if random.one_in(2) {
            rotten = rotten.reopen();
        }
        assert!(random.one_in(2) || rotten.is_damaged(id));
        let filters = [
            format!("{{'_id': {id}}}"),
            format!("{{'_id': {{'$in': [{id}, 'else']}}}}"),
            format!(
                "{{'$and': [{{'_id': {{'$gt': {}}}}}, {{'_id': {{'$lt': {}}}}}]}}",
                id - 1,
                id + 1
            ),
        ];
        let by_field = format!("{{'u': {id}}}");
        let filter = match part {
            Part::Inner if random.one_in(2) => &by_field,
            _ => random.choose(&filters),
        };
        let done = rotten.shop().delete(
            "things",
            &[deletion(filter, random.one_in(2))],
            true,
            Durability::Synced,
        );
        let done = done.expect("a request");
        assert_eq!((done.count, done.errors.len()), (1, 0), "{filter}: {:?}", done.errors);
        let expected = without(&rotten.documents, id);
        rotten.check(&expected);
    });
}

#[test]
fn all_documents_are_deleted_whatever_is_damaged() {
    for_seeds(6, |mut random| {
        let rotten = Rotten::new("all", &mut random);
        rotten.rot(1, Part::Outer);
        rotten.rot(4, Part::Inner);
        assert_eq!(delete(&rotten.shop(), "things", "{}"), COUNT as u64);
        rotten.check(&[]);
    });
}

#[test]
fn a_damaged_document_is_replaced() {
    for_seeds(24, |mut random| {
        let rotten = Rotten::new("replaced", &mut random);
        let id = *random.choose(&LARGE);
        let part = if random.one_in(2) { Part::Outer } else { Part::Inner };
        rotten.rot(id, part);
        let old = &rotten.documents[id as usize];
        let after = match random.below(3) {
            // The same content heals it.
            0 => old.clone(),
            1 => json(&format!("{{'_id': {id}, 'a': 77, 'u': {id}, 'tags': ['x']}}")),
            _ => document! { "_id": id, "u": -1, "text": letters(&mut random, 90_000).as_str() },
        };
        let mut by = after.clone();
        if part == Part::Inner {
            let fields = after.iter().filter(|(name, _)| *name != "_id");
            let mut out = frond_doc::DocumentBuilder::new();
            for (name, value) in fields {
                out.append(name, value);
            }
            by = out.build();
        }
        let filter = match part {
            Part::Inner if random.one_in(2) => format!("{{'u': {id}}}"),
            _ => format!("{{'_id': {id}}}"),
        };
        let done = update(&rotten.shop(), "things", replacement(&filter, &by));
        assert_eq!((done.matched, done.errors.len()), (1, 0), "{filter}: {:?}", done.errors);
        let mut expected = rotten.documents.clone();
        expected[id as usize] = after;
        rotten.check(&expected);
    });
}

/// A document that is stored twice has its chunks once. The sizes lie below and above the one from
/// which chunks that the store has don't travel with the transaction.
#[test]
fn a_document_that_is_inserted_again_heals_what_it_shares() {
    for_seeds(24, |mut random| {
        let disk = SimDisk::new(random.next());
        let count = *random.choose(&[100_000, 400_000, 900_000]);
        let texts = [letters(&mut random, count), letters(&mut random, 40_000)];
        let document = |id: i32| {
            let [text, other] = &texts;
            json(&format!("{{'_id': {id}, 'inner': {{'text': '{text}', 'other': '{other}'}}}}"))
        };
        let frond = open_on(&disk);
        let insert = |frond: &Frond, id: i32| {
            let shop = Repository::open(frond, "shop").expect("a name");
            let done = try_insert(&shop, "things", &[document(id)]);
            assert_eq!(done.count, 1, "{:?}", done.errors);
        };
        insert(&frond, 1);
        frond.flush().expect("room");
        frond.close().expect("it closes");
        drop(frond);
        let text = texts[random.below(2)].as_bytes();
        // Where compression or a chunk's end cut them apart they lie nowhere.
        while try_flip(&disk, &text[random.below(text.len() - 12)..][..12]) == 0 {}
        let mut frond = open_on(&disk);
        insert(&frond, 2);
        // Nothing is read before the end: what was read once is kept in memory.
        for _ in 0..random.below(3) {
            if random.one_in(2) {
                frond.flush().expect("room");
            }
            frond.close().expect("it closes");
            drop(frond);
            frond = open_on(&disk);
        }
        let shop = Repository::open(&frond, "shop").expect("a name");
        let found = run(&shop, "things", &request("{}")).expect("it is whole");
        assert!(found == [document(1), document(2)]);
    });
}

#[test]
fn one_damaged_document_fails_one_statement() {
    for_seeds(6, |mut random| {
        let rotten = Rotten::new("one", &mut random);
        rotten.rot(4, Part::Outer);
        let shop = rotten.shop();
        let set = |id: i32| statement(&format!("{{'_id': {id}}}"), "{'$set': {'a': 50}}");
        let statements = [set(2), set(4), set(5)];
        let done = shop.update("things", &statements, false, Durability::Synced);
        let done = done.expect("a request");
        assert_eq!((done.matched, done.modified), (2, 2));
        let errors: Vec<_> = done.errors.iter().map(|it| (it.position, it.error.kind)).collect();
        assert_eq!(errors, [(1, ErrorKind::Damaged)]);
        let statements = [set(1), set(4), set(5)];
        let done = shop.update("things", &statements, true, Durability::Synced);
        let done = done.expect("a request");
        assert_eq!((done.matched, done.errors.len()), (1, 1));
        // Nothing is found, and nothing is deleted, by what can't be read.
        let statements = [deletion("{'inner.text': 'x'}", true), deletion("{'_id': 3}", true)];
        let done = shop.delete("things", &statements, false, Durability::Synced);
        let done = done.expect("a request");
        assert_eq!((done.count, done.errors.len()), (1, 1));

        let transaction = rotten.frond.begin();
        let within = transaction.database("shop").expect("a name");
        let done =
            within.delete("things", &[deletion("{'_id': 4}", true)], true, Durability::Synced);
        assert_eq!(done.expect("a request").count, 1);
        assert_eq!(try_insert(&within, "things", &rotten.documents[4..5]).count, 1);
        transaction.commit(Durability::Synced, None).expect("alone");
        let mut expected = rotten.documents.clone();
        for id in [1, 2, 5] {
            let set = format!("{{'_id': {id}}}");
            expected[id] = run(&shop, "things", &request(&set)).expect("whole").remove(0);
            assert_eq!(expected[id].get("a").and_then(|a| a.as_integer()), Some(50));
        }
        drop((shop, within, transaction));
        rotten.check(&without(&expected, 3));
    });
}

/// A leaf that can't be read may hold anything. Writes lie above it.
#[test]
fn small_documents_of_a_damaged_leaf_are_written_by_their_ids() {
    for_seeds(8, |mut random| {
        let mut rotten = Rotten::new("leaf", &mut random);
        rotten.rot(2, Part::Outer);
        assert!(rotten.is_damaged(2) && rotten.is_damaged(3));
        let after = document! { "_id": 3, "a": 5, "u": 3 };
        for round in 0..2 {
            let shop = rotten.shop();
            let done = update(&shop, "things", replacement("{'_id': 3}", &after));
            assert_eq!((done.matched, done.errors.len()), (1, 0), "{:?}", done.errors);
            assert_eq!(delete(&shop, "things", "{'_id': 2}"), u64::from(round == 0));
            assert_eq!(find(&shop, "things", "{'_id': 2}"), "[]");
            assert_eq!(
                run(&shop, "things", &request("{'_id': 3}")).expect("whole"),
                std::slice::from_ref(&after)
            );
            let by_u = |filter: &str| {
                // So few documents would be scanned.
                let hint = Some(value("{'u': 1}"));
                run(&shop, "things", &FindRequest { hint, ..request(filter) }).expect("whole")
            };
            assert_eq!(by_u("{'u': 3}"), std::slice::from_ref(&after));
            assert!(by_u("{'u': 2}").is_empty());
            assert!(rotten.is_damaged(0));
            if random.one_in(2) {
                rotten.frond.flush().expect("room");
            }
            drop(shop);
            rotten = rotten.reopen();
        }
    });
}

/// The oldest go, whether they can be read or not.
#[test]
fn a_capped_collection_goes_on_behind_a_damaged_document() {
    let mut random = Random::fresh();
    let rotten = Rotten::new("capped", &mut random);
    let shop = rotten.shop();
    shop.create_collection("recent", json("{'capped': true, 'size': 1000000, 'max': 3}").view())
        .expect("made");
    assert_eq!(try_insert(&shop, "recent", &rotten.documents[4..7]).count, 3);
    rotten.frond.flush().expect("room");
    drop(shop);
    let rotten = rotten.reopen();
    rotten.rot(4, Part::Outer);
    let shop = rotten.shop();
    assert_eq!(try_insert(&shop, "recent", &rotten.documents[7..]).count, 1);
    assert_eq!(run(&shop, "recent", &request("{}")).expect("whole"), rotten.documents[5..]);
}

/// In files of a real directory.
#[test]
fn damage_is_listed_by_branch_collection_and_id() {
    // Of some seeds both places lie in one frame, and are one damage.
    let mut random = Random::new(1);
    let directory = std::env::temp_dir().join(format!("frond-damaged-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("a new directory");
    let shop = Repository::open(&frond, "shop").expect("a name");
    let documents: Vec<DocumentBuf> = (0..COUNT).map(|id| made(id, &mut random)).collect();
    assert_eq!(try_insert(&shop, "things", &documents).count, COUNT as u64);
    assert_eq!(try_insert(&shop, "others", &documents[..1]).count, 1);
    let id = shop.commit("all", "Ada").expect("a commit").id.to_string();
    shop.create_branch("side", None).expect("a branch");
    insert(&Repository::open(&frond, "shop@side").expect("a branch"), "things", "[{'_id': 9}]");
    frond.close().expect("it closes");
    drop((shop, frond));
    let none = frond_vcs::fsck(&directory, &mut |_| ()).expect("it answers");
    assert!(none.damages.is_empty() && none.lost.is_none(), "{:?}", none.damages);

    for id in [4, 6] {
        let text =
            documents[id].get("inner").and_then(|it| it.as_document()?.get("text")?.as_str());
        let marker = &text.expect("a text").as_bytes()[60_000..60_012];
        for file in std::fs::read_dir(&directory).expect("it is there") {
            let path = file.expect("it is there").path();
            let mut bytes = std::fs::read(&path).expect("it can be read");
            let at = bytes.windows(12).position(|window| window == marker);
            if let Some(at) = at.filter(|_| path.extension().is_some_and(|it| it == "pack")) {
                bytes[at] ^= 1;
                std::fs::write(&path, bytes).expect("room");
            }
        }
    }
    let before = files(&directory);
    let report = frond_vcs::fsck(&directory, &mut |_| ()).expect("it answers");
    assert_eq!(report.damages.len(), 2, "{:?}", report.damages);
    let lost = report.lost.expect("it can be told");
    let listed: Vec<_> = lost
        .collections
        .iter()
        .map(|it| (&*it.database, &*it.name, it.documents, it.lost.clone()))
        .collect();
    let document = |id: &str| frond_vcs::LostPart::Document(id.to_owned());
    let both = || vec![document("4"), document("6")];
    assert_eq!(listed, [("shop", "things", 6, both()), ("shop@side", "things", 7, both())]);
    assert_eq!(lost.commits_lost, [("shop".to_owned(), id)]);
    // Looking is no repair: once more, and what is there is as it was but for the manifest.
    assert!(frond_vcs::fsck(&directory, &mut |_| ()).expect("it answers").lost.is_some());
    assert_eq!(before, files(&directory));
    std::fs::remove_dir_all(&directory).expect("it is there");
}

/// The packs and the log.
fn files(directory: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .expect("it is there")
        .map(|file| file.expect("it is there"))
        .map(|file| (file.file_name().to_string_lossy().into_owned(), file.path()))
        .filter(|(name, _)| name.ends_with(".pack") || name.starts_with("log-"))
        .map(|(name, path)| (name, std::fs::read(path).expect("it can be read")))
        .collect();
    files.sort();
    files
}
