//! Goal: an update logs the change, not the document, and a replay of the log gives the same
//! documents.
//!
//! Method: the log's bytes are counted for updates of documents of all sizes. Then a script of
//! random updates, with version commits, branches and collections in between, runs once whole, and
//! again and again until the power fails: a restart must find the documents of a step that was
//! acknowledged last, or of the one under way.

use frond_db::{Database, Durability, Error, ErrorKind, Frond, FrondOptions, UpdateStatement};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_engine::ReclaimOptions;
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;

use crate::support::*;

/// A document of so many bytes and few more: an array, a number, and fields of some 60 bytes each.
fn sized(id: i32, bytes: usize) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", Value::Int32(id)).append("n", Value::Int32(1));
    out.begin_array("tags").push(Value::String("first")).end();
    let mut left = bytes;
    for field in 0.. {
        let name = format!("field_{field:04}");
        let text = format!("value {} and some padding behind it {id}", field * 7919);
        out.append(&name, Value::String(&text));
        left = left.saturating_sub(name.len() + text.len() + 7);
        if left == 0 {
            break;
        }
    }
    out.build()
}

fn updated(database: &Database, id: i32, update: &str) -> Result<(), Error> {
    let statement = UpdateStatement::new(json(&format!("{{'_id': {id}}}")), value(update));
    let report = database.update("things", &[statement], true, Durability::Synced)?;
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    Ok(())
}

#[test]
fn an_update_logs_what_changed() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let logged = |id: i32, update: &str| {
        let before = frond.counters().0.log_record_bytes;
        updated(&shop, id, update).expect("updated");
        frond.counters().0.log_record_bytes - before
    };
    // (KB, most bytes): a large document's pieces have names, which change too.
    let cases =
        [(1, 400), (4, 400), (10, 400), (20, 400), (31, 400), (33, 2500), (64, 2500), (1000, 2500)];
    for (id, (kilobytes, most)) in cases.into_iter().enumerate() {
        let id = id as i32;
        let document = sized(id, kilobytes << 10);
        let report = shop.insert("things", &[document], true, Durability::Synced);
        assert_eq!(report.expect("inserted").count, 1);
        let updates = [
            "{'$set': {'field_0007': 'VALUE 55433 and some padding behind it 0'}}",
            "{'$set': {'field_0007': 'another length'}}",
            "{'$inc': {'n': 1}}",
            "{'$push': {'tags': 'one more'}}",
            "{'$unset': {'field_0009': 1}}",
            "{'$set': {'field_0003': 'x'}, '$inc': {'n': 3}}",
        ];
        for is_folded in [false, true] {
            if is_folded {
                frond.engine().checkpoint().expect("flushed");
            }
            let bytes: Vec<u64> = updates.iter().map(|update| logged(id, update)).collect();
            println!("{kilobytes} KB: {bytes:?}");
            // The second time two of them change nothing.
            assert!(bytes.iter().all(|bytes| *bytes <= most), "{kilobytes} KB: {bytes:?}");
        }
    }
}

fn commit(database: &Repository) -> Result<(), Error> {
    match database.commit("again", "") {
        Err(error) if error.kind == ErrorKind::Invalid => Ok(()), // Nothing has changed.
        committed => committed.map(|_| ()),
    }
}

fn step(frond: &Frond, number: usize, random: &mut Random) -> Result<(), Error> {
    let main = Repository::open(frond, "shop")?;
    if number == 0 {
        let documents: Vec<DocumentBuf> = [300, 1 << 10, 12 << 10, 60 << 10]
            .into_iter()
            .zip(0..)
            .map(|(b, i)| sized(i, b))
            .collect();
        let report = main.insert("things", &documents, true, Durability::Synced)?;
        return report.errors.into_iter().next().map_or(Ok(()), |error| Err(error.error));
    }
    if number == 3 {
        commit(&main)?;
        return main.create_branch("side", None).map(|_| ());
    }
    match random.below(12) {
        0 => commit(&main),
        1 if random.one_in(2) => frond.engine().checkpoint().map_err(Error::from),
        1 => frond.engine().flush().map_err(Error::from),
        2 => frond.engine().reclaim(ReclaimOptions::default()).map(drop).map_err(Error::from),
        _ => {
            let database = match random.one_in(3) && number > 3 {
                true => Repository::open(frond, "shop@side")?,
                false => main,
            };
            let (field, word) = (random.below(4), random.below(1000));
            let update = match random.below(6) {
                0 => "{'$inc': {'n': 1}}".to_owned(),
                1 => format!("{{'$push': {{'tags': 'tag {word}'}}}}"),
                2 => format!("{{'$unset': {{'field_000{field}': 1}}}}"),
                3 => format!("{{'$set': {{'field_000{field}': '{word}'}}, '$inc': {{'n': 1}}}}"),
                _ => format!("{{'$set': {{'field_000{field}': 'value {word:04} and some'}}}}"),
            };
            updated(&database, random.below(4) as i32, &update)
        }
    }
}

fn digest(frond: &Frond) -> [String; 2] {
    ["shop", "shop@side"].map(|name| match Repository::open(frond, name) {
        Ok(database) => all(&database, "things"),
        Err(_) => "no branch".to_owned(),
    })
}

fn open_on(disk: &SimDisk) -> Result<Frond, Error> {
    frond_vcs::open_on(&disk.machine(), FrondOptions::default())
}

const STEPS: usize = 25;

#[test]
fn a_power_cut_leaves_the_documents_of_a_step() {
    for_seeds(6, |random| {
        let seed = random.clone().next();
        let whole = SimDisk::new(seed);
        let frond = open_on(&whole).expect("opens");
        let mut script = random.clone();
        let mut digests = vec![digest(&frond)];
        for number in 0..STEPS {
            step(&frond, number, &mut script).expect("the disk works");
            digests.push(digest(&frond));
        }
        drop(frond);
        let mut cuts = Random::new(seed);
        for _ in 0..6 {
            let disk = SimDisk::new(seed);
            disk.crash_after(cuts.below(whole.operations() as usize) as u64);
            let mut script = random.clone();
            let mut done = 0;
            if let Ok(frond) = open_on(&disk) {
                while done < STEPS && step(&frond, done, &mut script).is_ok() {
                    done += 1;
                }
            }
            let killed = cuts.one_in(2);
            let disk = if killed { disk.crash().kill() } else { disk.crash() };
            let frond = open_on(&disk).expect("a power cut needs no repair");
            let found = digest(&frond);
            assert!(digests[done..].iter().take(2).any(|digest| *digest == found), "step {done}");
            frond.engine().reclaim(ReclaimOptions::default()).expect("collected");
            drop(frond);
            assert_eq!(digest(&open_on(&disk.crash()).expect("opens again")), found);
        }
    });
}
