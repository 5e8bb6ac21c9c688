//! The disk over another one, beside plain vectors of bytes: each read is what was written last,
//! and the disk below stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use frond_store::io::{Disk, ScratchDisk};
use frond_testkit::SimDisk;
use frond_testkit::random::for_seeds;

#[test]
fn the_lock_is_that_of_the_disk_below() {
    let below: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let disk = ScratchDisk::over(&below).unwrap();
    disk.lock().unwrap();
    assert!(below.lock().is_err());
    disk.unlock();
    below.lock().unwrap();
}

#[test]
fn writes_are_read_back_and_never_reach_the_disk_below() {
    for_seeds(100, |mut random| {
        let below = SimDisk::new(random.next());
        for name in ["a", "b"] {
            let bytes = random.below(20_000);
            below.set_contents(name, &random.bytes(bytes));
        }
        let contents = |disk: &SimDisk| ["a", "b"].map(|name| disk.contents(name).unwrap());
        let before = contents(&below);
        let shared: Arc<dyn Disk> = Arc::new(below.clone());
        let disk = ScratchDisk::over(&shared).unwrap();
        let named = ["a", "b"].map(str::to_owned).into_iter();
        let mut model: BTreeMap<String, Vec<u8>> = named.zip(before.clone()).collect();
        disk.create("c").unwrap();
        assert!(disk.create("a").is_err());
        model.insert("c".to_owned(), Vec::new());
        for _ in 0..40 {
            let name = *random.choose(&["a", "b", "c"]);
            let (file, bytes) = (disk.open(name).unwrap(), model.get_mut(name).unwrap());
            let offset = random.below(bytes.len() + 9_000);
            let count = random.below(9_000);
            match random.below(5) {
                0 => {
                    file.set_bytes(offset as u64).unwrap();
                    bytes.resize(offset, 0);
                }
                1 => {
                    file.allocate(offset as u64).unwrap();
                    bytes.resize(bytes.len().max(offset), 0);
                }
                _ => {
                    let written = random.bytes(count);
                    file.write_all_at(offset as u64, &written).unwrap();
                    bytes.resize(bytes.len().max(offset + count), 0);
                    bytes[offset..offset + count].copy_from_slice(&written);
                }
            }
            assert_eq!(file.bytes().unwrap(), bytes.len() as u64);
            let start = random.below(bytes.len() + 1);
            let mut read = vec![0xee; random.below(bytes.len() - start + 1)];
            file.read_exact_at(start as u64, &mut read).unwrap();
            assert_eq!(read, bytes[start..start + read.len()]);
            assert!(file.read_exact_at(start as u64, &mut vec![0; bytes.len() + 1]).is_err());
        }
        disk.rename("c", "b").unwrap();
        let moved = model.remove("c").unwrap();
        model.insert("b".to_owned(), moved);
        assert!(disk.list().unwrap().iter().eq(model.keys()));
        for (name, bytes) in &model {
            let mut read = vec![0; bytes.len()];
            disk.open(name).unwrap().read_exact_at(0, &mut read).unwrap();
            assert!(read == *bytes, "{name}");
        }
        assert!(contents(&below) == before);
    });
}
