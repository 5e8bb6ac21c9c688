//! Requests over a million small documents in cache, each by processor time.
//!
//! A request runs once to warm up and then as often as [`REPETITIONS`] says; the best run counts,
//! because others on the machine only ever make one slower. Time is that of all threads of this
//! process (PostgreSQL: wall time, its server does nothing else).

use std::fs;
use std::time::Instant;

use crate::Failure;
use crate::frond::{Embedded, Request, options};

const REPETITIONS: usize = 5;
const NOTE_WORDS: u64 = 6;
const CACHE_BYTES: u64 = 2 << 30;

/// One row of the table: the same question to all.
struct Case {
    name: &'static str,
    request: Request,
    /// In SQLite over JSONB; over columns; in PostgreSQL over JSONB.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "asked of peers alone"))]
    peers: [&'static str; 3],
}

const CASES: &[Case] = &[
    Case {
        name: "group by a string: count, sum, avg, min, max",
        request: Request::Aggregate(
            r#"[{"$group":{"_id":"$station","n":{"$sum":1},"total":{"$sum":"$value"},"mean":{"$avg":"$value"},
               "low":{"$min":"$value"},"high":{"$max":"$value"}}}]"#,
        ),
        peers: [
            "select doc->>'$.station', count(*), sum(doc->>'$.value'), avg(doc->>'$.value'), min(doc->>'$.value'), max(doc->>'$.value') from docs group by 1",
            "select station, count(*), sum(value), avg(value), min(value), max(value) from plain group by 1",
            "select doc->>'station', count(*), sum((doc->>'value')::float8), avg((doc->>'value')::float8), min((doc->>'value')::float8), max((doc->>'value')::float8) from docs group by 1",
        ],
    },
    Case {
        name: "match and group by an int: count, sum",
        request: Request::Aggregate(
            r#"[{"$match":{"status":"ok","count":{"$gte":50}}},
               {"$group":{"_id":"$region","n":{"$sum":1},"total":{"$sum":"$count"}}}]"#,
        ),
        peers: [
            "select doc->>'$.region', count(*), sum(doc->>'$.count') from docs where doc->>'$.status' = 'ok' and doc->>'$.count' >= 50 group by 1",
            "select region, count(*), sum(count) from plain where status = 'ok' and count >= 50 group by 1",
            "select (doc->>'region')::int, count(*), sum((doc->>'count')::int) from docs where doc->>'status' = 'ok' and (doc->>'count')::int >= 50 group by 1",
        ],
    },
    Case {
        name: "match, project, group",
        request: Request::Aggregate(
            r#"[{"$match":{"status":"ok"}},{"$project":{"region":1,"twice":{"$multiply":["$value",2]}}},
               {"$group":{"_id":"$region","total":{"$sum":"$twice"}}}]"#,
        ),
        peers: [
            "select doc->>'$.region', sum(2 * (doc->>'$.value')) from docs where doc->>'$.status' = 'ok' group by 1",
            "select region, sum(2 * value) from plain where status = 'ok' group by 1",
            "select (doc->>'region')::int, sum(2 * (doc->>'value')::float8) from docs where doc->>'status' = 'ok' group by 1",
        ],
    },
    Case {
        name: "one group: sum",
        request: Request::Aggregate(r#"[{"$group":{"_id":null,"total":{"$sum":"$value"}}}]"#),
        peers: [
            "select sum(doc->>'$.value') from docs",
            "select sum(value) from plain",
            "select sum((doc->>'value')::float8) from docs",
        ],
    },
    Case {
        name: "match: a hundredth passes",
        request: Request::Find(r#"{"count":7}"#),
        peers: [
            "select json(doc) from docs where doc->>'$.count' = 7",
            "select number, station, region, at, value, count, status, x, y, note from plain where count = 7",
            "select doc::text from docs where (doc->>'count')::int = 7",
        ],
    },
    Case {
        name: "sort, limit 10",
        request: Request::Aggregate(r#"[{"$sort":{"value":-1,"_id":1}},{"$limit":10}]"#),
        peers: [
            "select json(doc) from docs order by doc->>'$.value' desc, number limit 10",
            "select number, station, region, at, value, count, status, x, y, note from plain order by value desc, number limit 10",
            "select doc::text from docs order by (doc->>'value')::float8 desc, number limit 10",
        ],
    },
    Case {
        name: "project two fields",
        request: Request::Aggregate(r#"[{"$project":{"station":1,"value":1}}]"#),
        peers: [
            "select json_object('_id', number, 'station', doc->>'$.station', 'value', doc->>'$.value') from docs",
            "select number, station, value from plain",
            "select jsonb_build_object('_id', number, 'station', doc->'station', 'value', doc->'value')::text from docs",
        ],
    },
    Case {
        name: "count with a filter",
        request: Request::Count(r#"{"status":"late"}"#),
        peers: [
            "select count(*) from docs where doc->>'$.status' = 'late'",
            "select count(*) from plain where status = 'late'",
            "select count(*) from docs where doc->>'status' = 'late'",
        ],
    },
    Case {
        name: "full scan",
        request: Request::Find("{}"),
        peers: [
            "select json(doc) from docs",
            "select number, station, region, at, value, count, status, x, y, note from plain",
            "select doc::text from docs",
        ],
    },
    Case {
        name: "distinct",
        request: Request::Distinct("station"),
        peers: [
            "select distinct doc->>'$.station' from docs",
            "select distinct station from plain",
            "select distinct doc->>'station' from docs",
        ],
    },
];

/// Measures; `COUNT` documents, of all cases or of those whose name holds `CASE`.
pub fn run(arguments: &[&str]) -> Result<(), Failure> {
    let count: u32 = arguments.first().map_or(Ok(1_000_000), |count| count.parse())?;
    let wanted = arguments.get(1).copied().unwrap_or("");
    let base = std::env::temp_dir().join(format!("frond-bench-query-{}", std::process::id()));
    fs::create_dir_all(&base)?;
    let done = table(&base, count, wanted);
    fs::remove_dir_all(&base)?;
    done
}

fn table(base: &std::path::Path, count: u32, wanted: &str) -> Result<(), Failure> {
    let frond = Embedded::load(&base.join("frond"), count, NOTE_WORDS, options(CACHE_BYTES))?;
    #[cfg(feature = "peers")]
    let sqlite = crate::peers::Sqlite::load(count, NOTE_WORDS)?;
    #[cfg(feature = "peers")]
    let mut postgres = {
        let directory = base.join("postgres");
        fs::create_dir_all(&directory)?;
        // The server may run as another user.
        crate::peers::Postgres::load(&directory, count, NOTE_WORDS)
    };
    #[cfg(feature = "peers")]
    if let Err(error) = &postgres {
        eprintln!("PostgreSQL is not run: {error}");
    }
    println!("{count} documents; million documents a second of one core\n");
    println!("| request | Frond | SQLite JSONB | SQLite columns | PostgreSQL JSONB |");
    println!("|---|---:|---:|---:|---:|");
    for case in CASES.iter().filter(|case| case.name.contains(wanted)) {
        let mut cells = Vec::new();
        let rate = |seconds: f64| format!("{:.2}", f64::from(count) / seconds / 1e6);
        let mut rows = 0;
        let seconds = best(|| {
            let begin = cpu_seconds()?;
            rows = frond.run(case.request)?.0;
            Ok(cpu_seconds()? - begin)
        })?;
        cells.push(rate(seconds));
        #[cfg(feature = "peers")]
        {
            for query in &case.peers[..2] {
                let mut found = 0;
                let seconds = best(|| {
                    let begin = cpu_seconds()?;
                    found = sqlite.run(query)?;
                    Ok(cpu_seconds()? - begin)
                })?;
                // A count is a number there, and one row here.
                if found != rows && found != 1 {
                    return Err(format!("{}: {found} rows, not {rows}", case.name).into());
                }
                cells.push(rate(seconds));
            }
            if let Ok(postgres) = &mut postgres {
                cells.push(rate(best(|| Ok(postgres.run(case.peers[2])?.1))?));
            }
        }
        println!("| {} | {} |", case.name, cells.join(" | "));
    }
    Ok(())
}

fn best(mut run: impl FnMut() -> Result<f64, Failure>) -> Result<f64, Failure> {
    run()?;
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    for _ in 0..REPETITIONS {
        best = best.min(run()?);
        if begin.elapsed().as_secs() > 20 {
            break;
        }
    }
    Ok(best)
}

/// Processor time of this process, as the scheduler counts it: to the nanosecond.
fn cpu_seconds() -> Result<f64, Failure> {
    let mut nanos = 0_u64;
    for thread in fs::read_dir("/proc/self/task")? {
        let path = thread?.path().join("schedstat");
        // A thread may end meanwhile.
        let Ok(text) = fs::read_to_string(path) else { continue };
        nanos += text.split_whitespace().next().ok_or("no time in schedstat")?.parse::<u64>()?;
    }
    Ok(nanos as f64 / 1e9)
}
