//! A stream that lags, whatever happens meanwhile.
//!
//! Goal: it goes on with the very next event and each document as it was written, or says that what
//! comes next isn't kept any more (286); it passes over nothing, and tells nothing twice.
//!
//! *Method*: numbered documents, some of them large, inserted, replaced and removed again; between
//! them flushes, collections of garbage, erasures, a disk that is full; crashes at random
//! operations of the disk. The stream goes on by its token after each.

use frond_db::{
    ChangeRetention, ChangeStreamRequest, Database, Durability, Error, Frond, FrondOptions,
    Interrupt, ReclaimOptions, StreamStart, UpdateStatement, Watched,
};
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value, document};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;

/// What a write did: the number of its document, and of what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    Insert(i32),
    Replace(i32, u64),
    Remove(i32),
}

fn open(disk: &SimDisk) -> Option<Frond> {
    let mut options = FrondOptions::default();
    options.engine.changes = ChangeRetention { seconds: 3600, bytes: 1 << 30 };
    options.engine.memtable_bytes_max = 1 << 20;
    options.engine.fold_threads = 0;
    frond_vcs::open_on(&disk.machine(), options).ok()
}

/// The document of a number: some are large.
fn content(number: i32, seed: u64) -> DocumentBuf {
    let mut random = Random::new(seed.wrapping_mul(1_000) + number as u64);
    let bytes = *random.choose(&[10, 300, 40_000, 90_000]);
    let bytes = random.bytes(bytes);
    let mut document = DocumentBuilder::new();
    document.append("_id", Value::Int32(number));
    document.append("bytes", Value::Binary(Binary { subtype: 0, bytes: &bytes }));
    document.build()
}

fn write(shop: &Database, write: Write) -> Result<(), Error> {
    let (ordered, durability) = (true, Durability::Synced);
    let errors = match write {
        Write::Insert(number) => {
            shop.insert("things", &[content(number, 0)], ordered, durability)?.errors
        }
        Write::Replace(number, seed) => {
            let document = content(number, seed);
            let whole = Value::Document(document.view()).to_buf();
            let statement = UpdateStatement::new(document! { "_id": number }, whole);
            shop.update("things", &[statement], ordered, durability)?.errors
        }
        Write::Remove(number) => {
            let statement = frond_db::DeleteStatement {
                filter: document! { "_id": number },
                only_first: true,
                hint: None,
                variables: None,
                collation: None,
            };
            shop.delete("things", &[statement], ordered, durability)?.errors
        }
    };
    errors.into_iter().next().map_or(Ok(()), |failed| Err(failed.error))
}

/// What an event tells, checked against what was written.
fn read(event: &DocumentBuf) -> Write {
    let key = event.get("documentKey").and_then(|key| key.as_document()?.get("_id")?.as_integer());
    let number = key.expect("a key") as i32;
    let kind = event.get("operationType").and_then(|kind| kind.as_str()).expect("a kind");
    let document = event.get("fullDocument").and_then(|document| document.as_document());
    let document = document.map(|document| document.to_buf());
    match kind {
        "insert" => {
            assert!(document.expect("it has one") == content(number, 0));
            Write::Insert(number)
        }
        "replace" => {
            let document = document.expect("it has one");
            let seeds = 1..200;
            let seed = seeds.into_iter().find(|seed| content(number, *seed) == document);
            Write::Replace(number, seed.expect("it was written"))
        }
        "delete" => Write::Remove(number),
        other => panic!("{other}"),
    }
}

/// The events behind a token, and the token behind them; an error's code.
fn told(frond: &Frond, token: &DocumentBuf) -> Result<(Vec<Write>, DocumentBuf), i32> {
    let shop = Repository::open(frond, "shop").expect("a proper name");
    let watched = Watched::Collection((*shop).clone(), "things".to_owned());
    let start = StreamStart::Resume(token.clone());
    let request = ChangeStreamRequest { start, ..ChangeStreamRequest::default() };
    let mut stream = frond.watch(watched, &request).map_err(|error| error.code.number())?;
    let mut told = Vec::new();
    while let Some(event) =
        stream.next(&Interrupt::default()).map_err(|error| error.code.number())?
    {
        told.push(read(&event));
    }
    Ok((told, stream.token()))
}

fn now(frond: &Frond) -> DocumentBuf {
    let shop = Repository::open(frond, "shop").expect("a proper name");
    let watched = Watched::Collection((*shop).clone(), "things".to_owned());
    frond.watch(watched, &ChangeStreamRequest::default()).expect("it is kept").token()
}

#[test]
fn a_stream_that_lags_goes_on_exactly_or_says_that_it_cannot() {
    for_seeds(30, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let mut frond = open(&disk).expect("an empty disk opens");
        let shop = Repository::open(&frond, "shop").expect("a proper name");
        write(&shop, Write::Insert(-1)).expect("the disk works");
        drop(shop);
        let mut token = now(&frond);
        let (mut next, mut open_numbers): (i32, Vec<i32>) = (0, Vec::new());
        for _ in 0..5 {
            let (mut expected, mut unknown, mut is_forgotten) = (Vec::new(), None, false);
            let shop = Repository::open(&frond, "shop").expect("a proper name");
            let may_crash = random.one_in(2);
            if may_crash {
                disk.crash_after(random.below(600) as u64);
            }
            // A full disk gives up what is kept before it refuses anything.
            let is_full = random.one_in(4);
            if is_full {
                disk.limit_to(Some(3 << 20));
            }
            for _ in 0..random.below(40) {
                let step = match (random.below(10), open_numbers.last().copied()) {
                    (0, _) => {
                        let _ = frond.flush();
                        continue;
                    }
                    (1, _) => {
                        let _ = frond.engine().reclaim(ReclaimOptions::default());
                        continue;
                    }
                    (2, _) if random.one_in(6) => {
                        // Where the disk fails in the middle it may have happened, too.
                        let _ = frond.engine().forget_changes();
                        is_forgotten = true;
                        continue;
                    }
                    (3 | 4, Some(number)) => Write::Replace(number, 1 + random.below(150) as u64),
                    (5, Some(number)) => Write::Remove(number),
                    _ => Write::Insert(next),
                };
                match step {
                    Write::Insert(_) => next += 1,
                    Write::Remove(number) => open_numbers.retain(|other| *other != number),
                    Write::Replace(..) => {}
                }
                match write(&shop, step) {
                    Ok(()) => {
                        expected.push(step);
                        if let Write::Insert(number) = step {
                            open_numbers.push(number);
                        }
                    }
                    Err(_) => {
                        unknown = Some(step);
                        break;
                    }
                }
            }
            drop((shop, frond));
            disk.limit_to(None);
            disk = if random.one_in(2) { disk.crash() } else { disk.kill() };
            frond = open(&disk).expect("what is there opens");
            match told(&frond, &token) {
                Ok((told, behind)) => {
                    let (known, more) = told.split_at(expected.len().min(told.len()));
                    assert_eq!(known, expected, "all that was acknowledged, in its order");
                    assert!(more.is_empty() || more == [unknown.expect("one was tried")]);
                    token = behind;
                }
                Err(code) => {
                    assert_eq!(code, 286);
                    // A crash may cost it, too: rarely, and it is told.
                    assert!(is_forgotten || is_full || may_crash, "nothing else gives it up");
                    token = now(&frond);
                }
            }
            // What is there, whatever became of the last.
            let shop = Repository::open(&frond, "shop").expect("a proper name");
            let all = crate::support::run(&shop, "things", &crate::support::request("{}"));
            let ids = all.expect("it is read");
            let ids = ids.iter().filter_map(|document| document.get("_id")?.as_integer());
            open_numbers = ids.map(|id| id as i32).filter(|id| 0 <= *id).collect();
        }
    });
}
