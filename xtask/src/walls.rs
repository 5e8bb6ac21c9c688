//! Walls inside crates: which room of a crate may import which, and how many files import each
//! other in a ring.
//!
//! 1. The files and folders right below a crate's `src` are its *rooms*: `collection.rs` and all
//!    below `collection/` are one. [`CRATES`] lists each crate's rooms in order; a room imports
//!    only those before it.
//! 2. A room may be a *gate*: those above it name what stands below it only through it.
//! 3. The remaining imports the other way, and files in rings, stand there as counts. They may only
//!    fall: a count that is lower than the table says must be written down.
//!
//! Imports are read from the text (`imports`): one through a macro or a trait's method isn't seen.

use std::collections::BTreeMap;
use std::path::Path;

use crate::imports::Crate;

/// A ring of so many files may be one idea in several files.
const RING_MAX: usize = 6;

/// A crate with inner walls.
struct Walls {
    name: &'static str,
    /// Its rooms, the lowest first. `lib` passes on what the others have, and belongs to no room.
    rooms: &'static str,
    /// The room through which those above it reach those below it.
    gate: Option<&'static str>,
    /// Imports of a room that stands higher, in pairs of files, that are still there.
    upward: usize,
    /// Files in rings of more than [`RING_MAX`] that are still there.
    in_rings: usize,
}

const CRATES: &[Walls] = &[
    Walls {
        name: "store",
        rooms: "hash error io bucket headroom lifetime location entry_name field unreadable damage stripe gc manifest unrelated_files new_directory \
                interpolation chunk pack index read cache counters budget memory_queue copies chunk_store layer memory \
                tiered local",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "tree",
        rooms: "format error boundary levels sequence value map",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "quorum",
        rooms: "ids configuration entry log convert frame log_view defect member running simulation",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "engine",
        rooms: "ids cursor_progress entry change_event error disk_reserve background options fingerprint log order durable_horizon overlay \
                fault state readable_states queue signals snapshot slow_commits write_memory statistics retained_states shared changes \
                recent_snapshots transaction \
                compaction gc commit follow check image recovery rebuilt_snapshots threads engine",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "doc",
        rooms: "error element_type reference raw validate name_walk field_index document builder \
                path field_scan decimal key normalise order extended_json pieces column",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "script",
        rooms: "message socket read write engine threads turn worker processes host",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "query",
        rooms: "code error known_fields examined metadata outermost by_name sandbox batched_calls memory script script_batches cores large text sort_field number collation keys sort feature \
                geometry regex search expression filter projection accumulator index planner \
                replacement pipeline update reference",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "db",
        rooms: "spill error request_profile commit_id date interrupt name definition timeseries large system session event rewritten tail \
                schema clock \
                uncommitted_writes contention ended_cursors frond transact transaction reader pressure access refs fence retry time \
                database read_point hook \
                catalog collection changes expire set open api inside golden",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "vcs",
        rooms: "fields three_way repository history refs conflict state past diff document_history status rows \
                source collection_rules adopt commit policy restore merge reset undo layer open \
                doctor erase remote salvage fsck repair branch handover reclaim",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "remote",
        rooms: "runtime remote_url azure_account object_client bucket_storage cas_probe object_bucket \
                store_probe tiered http open",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "server",
        rooms: "errors wire tls unix_socket announced supervisor limits time_limits stalled_bytes kept_documents outgoing tables fields stable_api \
                common_fields default_concerns scram chance cluster_time fail_points access peer sessions workers message_memory \
                machine_memory process_counts usage operations lent_connections waiting answer_memory remote_opener cursors \
                log_file log replica client line_remote audit_log drain snapshot_window profiler hooks shared held_commits health audit logins authorization \
                transactions automatic_commits sweep governor request commands reference concerns member dispatch \
                in_process connection metrics console listener private router",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
    Walls {
        name: "cli",
        rooms: "plain_text notice failure allocator panics text_file output pager terminal json_list output_file input directory backend arguments \
                commands other_tools bin",
        gate: None,
        upward: 0,
        in_rings: 0,
    },
];

/// The imports of a crate that lead upward, and its rings.
struct Found {
    name: &'static str,
    files: usize,
    upward: Vec<String>,
    past_gate: Vec<String>,
    rings: Vec<Vec<String>>,
}

/// Reads all crates with inner walls.
fn survey(root: &Path) -> Result<Vec<Found>, String> {
    CRATES.iter().map(|walls| find(root, walls)).collect()
}

/// Prints each crate's order of rooms, and how much is left against it.
pub fn print(root: &Path) -> Result<(), String> {
    for (walls, found) in CRATES.iter().zip(survey(root)?) {
        let rooms: Vec<&str> = walls.rooms.split_whitespace().collect();
        let rings: Vec<usize> = found.rings.iter().map(Vec::len).collect();
        let (name, files, upward) = (found.name, found.files, found.upward.len());
        println!("{name}: {}", rooms.join(" < "));
        println!("  {files} files, {upward} imports against the order, rings of files: {rings:?}");
    }
    Ok(())
}

/// Returns a line for each crate that has more, or less, than its table says.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for (walls, found) in CRATES.iter().zip(survey(root)?) {
        let name = walls.name;
        let in_rings: usize = found.rings.iter().map(Vec::len).sum();
        for (what, count, left, seen) in [
            ("imports of higher rooms", found.upward.len(), walls.upward, &found.upward),
            ("imports past the gate", found.past_gate.len(), 0, &found.past_gate),
            ("files in rings", in_rings, walls.in_rings, &found.rings.concat()),
        ] {
            if count > left {
                let seen = seen.join("\n  ");
                faults.push(format!("crates/{name}: {count} {what}, {left} are left:\n  {seen}"));
            } else if count < left {
                faults.push(format!("crates/{name}: {count} {what}: write it down in walls.rs"));
            }
        }
    }
    Ok(faults)
}

fn find(root: &Path, walls: &Walls) -> Result<Found, String> {
    let source = Path::new("crates").join(walls.name).join("src");
    let mut files = Vec::new();
    for path in crate::tracked(root, ".rs")? {
        if let Ok(inside) = path.strip_prefix(&source) {
            files.push((inside.to_owned(), crate::read(root, &path)?));
        }
    }
    let read = Crate::read(files);
    let ranks: BTreeMap<&str, usize> =
        walls.rooms.split_whitespace().enumerate().map(|(rank, room)| (room, rank)).collect();
    let rank = |file: usize| {
        let room = read.files[file].iter().next().unwrap_or_default().to_string_lossy();
        let room = room.trim_end_matches(".rs");
        if room == "lib" {
            return Ok(None);
        }
        let rank = ranks.get(room).copied().map(Some);
        rank.ok_or_else(|| format!("crates/{}: {room} stands in no order of walls.rs", walls.name))
    };
    let mut upward = Vec::new();
    for (from, to) in &read.imports {
        if let (Some(lower), Some(higher)) = (rank(*from)?, rank(*to)?)
            && lower < higher
        {
            upward.push(format!(
                "{} imports {}",
                read.files[*from].display(),
                read.files[*to].display()
            ));
        }
    }
    let mut past_gate = Vec::new();
    if let Some(gate) = walls.gate.and_then(|gate| ranks.get(gate)) {
        for (file, name) in &read.named {
            let is_above = rank(*file)?.is_some_and(|rank| *gate < rank);
            let is_below = ranks.get(name.as_str()).is_none_or(|rank| rank < gate);
            if is_above && is_below {
                past_gate.push(format!("{} names crate::{name}", read.files[*file].display()));
            }
        }
    }
    let rings = read.rings().into_iter().filter(|ring| ring.len() > RING_MAX);
    let shown = |ring: Vec<&Path>| ring.iter().map(|file| file.display().to_string()).collect();
    Ok(Found {
        name: walls.name,
        files: read.files.len(),
        upward,
        past_gate,
        rings: rings.map(shown).collect(),
    })
}
