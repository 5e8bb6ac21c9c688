//! Goal: a directory that reads what another one leads reads all that this has sent, changes
//! nothing in the bucket, and knows when it is to be opened again; and no directory is taken for
//! one of the other kind. Method: leaders and readers on simulated disks of one simulated bucket.

use super::*;

/// A directory that reads.
struct Reader {
    node: Node,
}

impl Reader {
    fn new(seed: u64, bucket: &SimDepot) -> Reader {
        Reader { node: Node::new(seed, bucket) }
    }

    fn open(&self) -> Result<(Arc<TieredDisk>, Arc<LocalStore>), StoreError> {
        let machine = self.node.disk.machine();
        let options = self.node.tiered_options();
        let tiered =
            Arc::new(TieredDisk::open_reader(&machine, self.node.bucket.clone(), options)?);
        let machine = Machine { disk: Arc::clone(&tiered) as _, ..machine };
        let store = LocalStore::open(&machine, self.node.options)?;
        Ok((tiered, store))
    }
}

fn put(store: &LocalStore, random: &mut Random) -> Vec<Chunk> {
    let chunks = random_chunks(random, 30);
    store.put_many(&chunks).unwrap();
    let root = above(&chunks);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(store, root.hash()).unwrap();
    chunks
}

#[test]
fn a_reader_reads_what_was_sent_and_changes_nothing() {
    for_seeds(10, |mut random| {
        let bucket = SimDepot::new(random.next());
        let leader = Node::new(random.next(), &bucket);
        let store = leader.open().unwrap();
        let mut chunks = put(&store, &mut random);
        let reader = Reader::new(random.next(), &bucket);
        for _ in 0..4 {
            let objects = bucket.objects();
            let (tiered, read) = reader.open().unwrap();
            assert_stored(&*read, &chunks);
            assert!(!tiered.is_outdated().unwrap());
            // What it writes stays with it.
            let own = put(&read, &mut random);
            assert_stored(&*read, &own);
            read.maintenance().purge_tier().unwrap();
            assert_eq!(bucket.objects(), objects);
            chunks.extend(put(&store, &mut random));
            assert!(tiered.is_outdated().unwrap());
            assert_stored(&*read, &chunks[..30]);
            drop((tiered, read));
            let (_, read) = reader.open().unwrap();
            assert_eq!(read.has_many(&[own[29].hash()]).unwrap(), [false], "it begins anew");
        }
        assert_stored(&*store, &chunks);
    });
}

#[test]
fn a_reader_fetches_nothing_twice() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let leader = Node::new(2, &bucket);
    let store = leader.open().unwrap();
    let chunks = put(&store, &mut random);
    let mut reader = Reader::new(3, &bucket);
    reader.node.cache_bytes = 64 << 20;
    assert_stored(&*reader.open().unwrap().1, &chunks);
    let read = bucket.bytes_read();
    assert_stored(&*reader.open().unwrap().1, &chunks);
    assert_eq!(bucket.bytes_read(), read);
    // What the leader moved comes anew, and the indexes of what is gone go.
    store
        .collect(&mut GarbageCollection {
            roots: &mut || Ok(Vec::new()),
            throttle: &mut |_| std::ops::ControlFlow::Continue(()),
            options: GcOptions { live_percent_min: 101, dry_run: false, pack_history: true },
        })
        .unwrap();
    let more = put(&store, &mut random);
    assert_stored(&*reader.open().unwrap().1, &more);
    let names = reader.node.disk.list().unwrap();
    let indexes = names.iter().filter(|name| name.ends_with(".index")).count();
    let packs = bucket.objects().len();
    assert!(0 < indexes && indexes < packs, "{indexes} indexes, {packs} objects");
}

#[test]
fn no_directory_is_taken_for_one_of_the_other_kind() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(4);
    let reader = Reader::new(5, &bucket);
    let message = |error: Option<StoreError>| error.expect("it is refused").to_string();
    let error = message(reader.open().err());
    assert!(error.contains("nothing whole yet"), "{error}");
    let leader = Node::new(6, &bucket);
    let store = leader.open().unwrap();
    let chunks = put(&store, &mut random);
    drop(store);
    let as_reader = Reader { node: leader.again(leader.disk.kill(), &bucket) };
    let error = message(as_reader.open().err());
    assert!(error.contains("this directory leads"), "{error}");
    drop(reader.open().unwrap());
    let mut as_leader = reader.node.again(reader.node.disk.kill(), &bucket);
    as_leader.take_over = true;
    let error = message(as_leader.open().err());
    assert!(error.contains("reads what another one leads"), "{error}");
    assert_stored(&*as_reader.node.open().unwrap(), &chunks);
    // Nor is it, where the bucket was emptied.
    bucket.remove("lines/main/HEAD").unwrap();
    let error = message(as_leader.again(as_leader.disk.kill(), &bucket).open().err());
    assert!(error.contains("reads what another one leads"), "{error}");
    let alone = Node::new(7, &bucket);
    drop(crate::open(&alone.disk).unwrap());
    let error = message(Reader { node: alone }.open().err());
    assert!(error.contains("name an empty one"), "{error}");
}

/// One that was to read, and found nothing to read.
#[test]
fn a_directory_that_has_read_nothing_may_lead() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(8);
    let reader = Reader::new(9, &bucket);
    reader.open().err().expect("there is nothing to read");
    let leader = reader.node.again(reader.node.disk.kill(), &bucket);
    let store = leader.open().unwrap();
    let chunks = put(&store, &mut random);
    drop(store);
    let as_reader = Reader { node: leader.again(leader.disk.kill(), &bucket) };
    let error = as_reader.open().err().expect("it has a name of its own now").to_string();
    assert!(error.contains("this directory leads"), "{error}");
    let again = Reader::new(10, &bucket);
    assert_stored(&*again.open().unwrap().1, &chunks);
    assert_stored(&*as_reader.node.open().unwrap(), &chunks);
}

/// A directory with files of its owner's is left alone, and what comes into a reader's later.
#[test]
fn files_of_others_stay() {
    let bucket = SimDepot::new(1);
    let leader = Node::new(2, &bucket);
    let store = leader.open().unwrap();
    put(&store, &mut Random::new(3));
    let reader = Reader::new(4, &bucket);
    let disk = reader.node.disk.machine().disk;
    disk.create("letter.txt").unwrap();
    disk.create("00000000.index").unwrap();
    let refused = reader.open().map(drop).unwrap_err().to_string();
    assert!(refused.contains("letter.txt"), "{refused}");
    assert_eq!(disk.list().unwrap(), ["00000000.index", "letter.txt"]);
    disk.remove("letter.txt").unwrap();
    drop(reader.open().unwrap());
    disk.create("letter.txt").unwrap();
    drop(reader.open().unwrap());
    assert!(disk.open("letter.txt").is_ok());
}
