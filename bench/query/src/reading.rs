//! The documents of the benchmark: readings of stations, about 200 bytes each, made from their
//! number.

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

/// Different values of `station`.
pub const STATIONS: u64 = 1_000;
/// Different values of `region`.
pub const REGIONS: u64 = 50;
const BEGIN_MILLIS: i64 = 1_700_000_000_000;
const WORDS: [&str; 8] =
    ["granite", "harbour", "lantern", "meadow", "orchard", "pebble", "quarry", "ribbon"];

/// One reading.
pub struct Reading {
    /// `_id`: ascends.
    pub number: i32,
    /// `station-0042`.
    pub station: String,
    /// The region, below [`REGIONS`].
    pub region: i32,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The value, below 1000.
    pub value: f64,
    /// The count, below 100.
    pub count: i32,
    /// `ok` for nine tenths, else `late`.
    pub status: &'static str,
    /// Some words.
    pub note: String,
}

/// Mixes a number's bits: splitmix64's last step (Steele, Lea, Flood: Fast Splittable Pseudorandom
/// Number Generators, 2014).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The reading called `number`; its note has `note_words` words.
pub fn reading(number: u32, note_words: u64) -> Reading {
    let random = mixed(u64::from(number));
    let word = |position: u64| WORDS[(mixed(random ^ position) % 8) as usize];
    Reading {
        number: number as i32,
        station: format!("station-{:04}", random % STATIONS),
        region: ((random >> 16) % REGIONS) as i32,
        at: BEGIN_MILLIS + i64::from(number) * 250,
        value: ((random >> 24) % 1_000_000) as f64 / 1_000.0,
        count: ((random >> 44) % 100) as i32,
        status: if (random >> 52).is_multiple_of(10) { "late" } else { "ok" },
        note: (0..note_words).map(word).collect::<Vec<_>>().join(" "),
    }
}

/// As BSON.
pub fn document(reading: &Reading) -> DocumentBuf {
    let mut document = DocumentBuilder::new();
    document
        .append("_id", Value::Int32(reading.number))
        .append("station", Value::String(&reading.station))
        .append("region", Value::Int32(reading.region))
        .append("at", Value::DateTime(reading.at))
        .append("value", Value::Double(reading.value))
        .append("count", Value::Int32(reading.count))
        .append("status", Value::String(reading.status))
        .begin_document("place")
        .append("x", Value::Int32(reading.region * 7))
        .append("y", Value::Int32(reading.count * 3))
        .end()
        .append("note", Value::String(&reading.note));
    document.build()
}
