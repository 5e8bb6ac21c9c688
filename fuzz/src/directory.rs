//! Files of a data directory, of which bytes were changed and checksums hold nevertheless: opening
//! it and reading all of it ends in answers or errors.

use std::sync::LazyLock;

use frond_db::FrondOptions;
use frond_server::InProcess;
use frond_store::io::Disk as _;
use frond_testkit::SimDisk;

use crate::commands::run;

/// What stands in the directory: versions, branches, a conflict, packs of each kind, and a log.
const MADE_BY: &[&str] = &[
    r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#,
    r#"{"insert": "c", "documents": [{"_id": 1, "a": 5}, {"_id": 2, "a": 6}]}"#,
    r#"{"create": "capped", "capped": true, "size": 4096}"#,
    r#"{"frondCommit": 1, "message": "first", "author": "a"}"#,
    r#"{"frondTag": 1, "tag": "v1", "message": "tagged"}"#,
    r#"{"frondBranch": 1, "branch": "other"}"#,
    r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 7}}}]}"#,
    r#"{"frondCommit": 1, "message": "second", "author": "a"}"#,
    r#"{"frondGc": 1}"#,
];
const MADE_BEHIND: &[&str] = &[
    r#"{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$inc": {"a": 1}}}]}"#,
    r#"{"insert": "capped", "documents": [{"_id": 1, "n": 1}]}"#,
    r#"{"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}"#,
];

/// What is read of it. What a diff shows are fields of documents, which are believed to be what was
/// validated when they came in: nothing but a checksum tells.
const READ_BY: &[&str] = &[
    r#"{"listCollections": 1}"#,
    r#"{"find": "c"}"#,
    r#"{"find": "c", "filter": {"a": {"$gt": 0}}}"#,
    r#"{"find": "large", "filter": {"sections.40.title": 40}, "projection": {"n": 1}}"#,
    r#"{"find": "capped"}"#,
    r#"{"validate": "c", "full": true}"#,
    r#"{"validate": "large", "full": true}"#,
    r#"{"frondBranch": 1}"#,
    r#"{"frondStatus": 1}"#,
    r#"{"frondLog": 1}"#,
    r#"{"frondReflog": 1}"#,
    r#"{"update": "large", "updates": [{"q": {"_id": 1}, "u": {"$set": {"sections.60.title": -1}}}]}"#,
    r#"{"frondCommit": 1, "message": "third", "author": "a"}"#,
    r#"{"frondGc": 1}"#,
];

static FILES: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let disk = SimDisk::new(1);
    let opened = |disk: &SimDisk| {
        let frond = frond_vcs::open_on(&disk.machine(), options()).expect("opens");
        (InProcess::new(frond.clone()), frond)
    };
    let well = |server: &InProcess, command: &str| {
        let answer = run(server, command).unwrap_or_else(|| panic!("no JSON: {command}"));
        assert!(answer.contains(r#""ok":1"#), "{command}: {answer}");
    };
    let (server, frond) = opened(&disk);
    let section =
        |number: u32| format!(r#"{{"title": {number}, "body": "{}"}}"#, "body ".repeat(90));
    let sections: Vec<String> = (0..90).map(section).collect();
    let large = format!(
        r#"{{"insert": "large", "documents": [{{"_id": 1, "n": 1, "sections": [{}]}}]}}"#,
        sections.join(",")
    );
    well(&server, &large);
    MADE_BY.iter().for_each(|command| well(&server, command));
    frond.flush().expect("flushes");
    MADE_BEHIND.iter().for_each(|command| well(&server, command));
    well(
        &server,
        r#"{"update": "large", "updates": [{"q": {"_id": 1}, "u": {"$set": {"sections.40.title": 40}}}]}"#,
    );
    let disk = disk.kill();
    let names = disk.list().expect("the disk is alive");
    let file = |name: String| {
        let mut contents = disk.contents(&name).expect("it was listed");
        let used = contents.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        contents.truncate(used.next_multiple_of(4096).min(contents.len()));
        (name, contents)
    };
    let files: Vec<_> =
        names.into_iter().map(file).filter(|(_, contents)| !contents.is_empty()).collect();
    let (server, _) = opened(&disk);
    READ_BY.iter().for_each(|command| well(&server, command));
    files
});

fn options() -> FrondOptions {
    FrondOptions::for_memory(64 << 20)
}

/// Changes: of five bytes each, the file, where in it (three bytes), and what stands there then.
pub fn directory(changes: &[u8]) {
    let mut files = FILES.clone();
    for &[file, low, middle, high, byte] in changes.as_chunks::<5>().0 {
        let count = files.len();
        let contents = &mut files[usize::from(file) % count].1;
        let offset = u32::from_le_bytes([low, middle, high, 0]) as usize;
        match contents.get_mut(offset) {
            Some(place) => *place = byte,
            None => contents.truncate(offset % (contents.len() + 1)),
        }
    }
    let disk = SimDisk::new(1);
    files.iter().for_each(|(name, contents)| disk.set_contents(name, contents));
    let Ok(frond) = frond_vcs::open_on(&disk.machine(), options()) else { return };
    let server = InProcess::new(frond);
    for command in READ_BY {
        run(&server, command);
    }
}
