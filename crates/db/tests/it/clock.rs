//! Goal: a clock that is wrong deletes nothing, dates nothing and pins nothing, whatever it says;
//! one that is right is followed, also after a long pause. Method: cases, on a clock that the test
//! sets.

use frond_db::retry::{NumberState, StatementIds};
use frond_db::{Frond, FrondOptions, Interrupt, ReclaimOptions, RetryKey, RetryableWrite};
use frond_doc::{DocumentBuf, Timestamp, Value, document};
use frond_engine::{Engine, EngineOptions, TreeId};
use frond_query::Code;
use frond_store::io::Clock;
use frond_testkit::{SimClock, SimDisk};
use frond_vcs::BranchPolicy;
use frond_vcs::Repository;

use super::support::{all, request, run, statement, try_insert, update};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
const CENTURY: i64 = 36_525 * DAY;

struct World {
    disk: SimDisk,
    clock: SimClock,
    begun: i64,
}

fn open(disk: &SimDisk, clock: &SimClock) -> Frond {
    let machine = frond_testkit::machine::machine(disk, clock, 1);
    frond_vcs::open_on(&machine, FrondOptions::default())
        .expect("it opens, whatever the clock says")
}

const KEY: RetryKey = RetryKey { session: [3; 16], number: 1 };
/// The retry records of a server live so long.
const RETRY_MILLIS: i64 = 30 * 60 * 1_000;
const UNDO_MILLIS: u64 = 14 * 24 * 3_600 * 1_000;

impl World {
    /// A directory with one of everything that expires: each is due in a day or more.
    fn new() -> World {
        let (disk, clock) = (SimDisk::new(1), SimClock::new());
        let world = World { begun: clock.now_micros(), disk, clock };
        let frond = world.open();
        let shop = shop(&frond);
        let spec =
            document! { "key": &document! { "at": 1_i32 }, "expireAfterSeconds": 86_400_i32 };
        let spec = frond_db::catalog::IndexSpec::parse(spec.view()).expect("a good index");
        shop.create_indexes("visits", &[spec]).expect("made");
        let at = Value::DateTime(frond.now_millis());
        try_insert(&shop, "visits", &[document! { "_id": 1_i32, "at": at }]);
        try_insert(&shop, "gone", &[document! { "_id": 1_i32 }]);
        shop.commit("first", "Ada").expect("committed");
        shop.drop_collection("gone").expect("dropped");
        shop.create_branch("month", None).expect("made");
        let expires_millis = Some(frond.now_millis() + 30 * DAY / 1_000);
        let policy = BranchPolicy { expires_millis, ..BranchPolicy::default() };
        shop.set_branch_policy("month", policy).expect("set");
        let write = RetryableWrite { key: KEY, statements: StatementIds::From(0) };
        try_insert(&shop.retryable(write), "others", &[document! { "_id": 7_i32 }]);
        frond.close().expect("closed");
        world
    }

    fn open(&self) -> Frond {
        open(&self.disk, &self.clock)
    }

    fn open_again(&self, frond: Frond) -> Frond {
        frond.close().expect("closed");
        drop(frond);
        self.open()
    }
}

fn shop(frond: &Frond) -> Repository {
    Repository::open(frond, "shop").expect("a proper name")
}

/// Runs the periodic work of a server, and a garbage collection.
fn sweep(frond: &Frond) {
    frond.keep_clock().expect("recorded");
    assert!(frond_vcs::run_policies(frond).failed.is_empty());
    frond.expire_documents(&Interrupt::default()).expect("the disk works");
    if let Some(now) = frond.expiry_millis() {
        frond.forget_retries(now - RETRY_MILLIS).expect("the disk works");
    }
    frond_vcs::reclaim(frond, UNDO_MILLIS, ReclaimOptions::default()).expect("the disk works");
}

/// Returns which things are still there: the visit, the branch, the retry record, the dropped
/// collection.
fn left(frond: &Frond) -> [bool; 4] {
    let shop = shop(frond);
    let reflog = shop.reflog(Some("main")).expect("read");
    [
        all(&shop, "visits") != "[]",
        Repository::open(frond, "shop@month").is_ok(),
        frond.number_state(KEY).expect("read") == NumberState::Write,
        reflog.iter().any(|change| change.collection.as_deref() == Some("gone")),
    ]
}

const ALL: [bool; 4] = [true; 4];
const NOTHING: [bool; 4] = [false; 4];

/// The time of a commit that is made now, in microseconds.
fn commit(frond: &Frond, id: i32) -> i64 {
    let shop = shop(frond);
    try_insert(&shop, "more", &[document! { "_id": id }]);
    shop.commit("more", "Ada").expect("committed").timestamp_millis * 1_000
}

/// The second that Sequences are at.
fn second(frond: &Frond) -> i64 {
    (frond.operation_time().0 >> 32) as i64
}

#[test]
fn a_clock_a_hundred_years_off_is_ignored_until_it_is_right() {
    for leap in [CENTURY, -CENTURY, 2 * YEAR, -2 * DAY, i64::MAX, i64::MIN] {
        let world = World::new();
        let mut frond = world.open();
        world.clock.set(world.begun.saturating_add(leap));
        world.clock.step(2 * HOUR);
        for restart in [false, true] {
            if restart {
                frond = world.open_again(frond);
            }
            sweep(&frond);
            assert_eq!(left(&frond), ALL, "leap {leap}, restart {restart}");
            assert!(frond.clock_state().is_doubted);
            let time = commit(&frond, i32::from(restart));
            assert!((world.begun..world.begun + 3 * HOUR).contains(&time), "leap {leap}: {time}");
            let ahead = second(&frond) - world.begun / SECOND;
            assert!((0..3 * 3_600).contains(&ahead), "leap {leap}: {ahead}");
        }
        world.clock.set(world.begun + 3 * HOUR);
        let frond = world.open_again(frond);
        sweep(&frond);
        assert!(!frond.clock_state().is_doubted, "leap {leap}");
        // The retry record is three hours old by now, and that is right.
        assert_eq!(left(&frond), [true, true, false, true], "leap {leap}");
        assert_eq!(commit(&frond, 5), world.begun + 3 * HOUR, "leap {leap}");
        world.clock.step(31 * DAY);
        sweep(&frond);
        assert_eq!(left(&frond), NOTHING, "leap {leap}");
    }
}

#[test]
fn a_directory_that_was_closed_for_a_year_expires_what_is_due() {
    let world = World::new();
    world.clock.set(world.begun + YEAR);
    let frond = world.open();
    sweep(&frond);
    assert_eq!(left(&frond), ALL, "a clock that is wrong at the start is corrected within an hour");
    world.clock.step(HOUR);
    sweep(&frond);
    assert_eq!(left(&frond), NOTHING);
    assert_eq!(commit(&frond, 1), world.begun + YEAR + HOUR);
}

/// As an operator who runs a command now and then sees it.
#[test]
fn a_year_is_believed_by_the_second_process_an_hour_later() {
    let world = World::new();
    world.clock.set(world.begun + YEAR);
    for (passed, expected) in [(0, ALL), (HOUR / 2, ALL), (HOUR, NOTHING)] {
        world.clock.set(world.begun + YEAR + passed);
        let frond = world.open();
        sweep(&frond);
        assert_eq!(left(&frond), expected, "after {passed}");
        frond.close().expect("closed");
    }
}

/// Tries a steady clock that goes on meanwhile, and one that stands still as with a virtual machine
/// that was paused.
#[test]
fn a_machine_that_slept_for_three_days_expires_what_is_due() {
    for is_steady in [true, false] {
        let world = World::new();
        let frond = world.open();
        if is_steady {
            world.clock.step(3 * DAY);
        } else {
            world.clock.set(world.begun + 3 * DAY);
        }
        sweep(&frond);
        assert!(!frond.clock_state().is_doubted);
        assert_eq!(left(&frond), [false, true, false, true], "steady: {is_steady}");
        assert_eq!(commit(&frond, 1), world.begun + 3 * DAY);
    }
}

/// A board without a battery: its clock begins with 1970 and is set once there is a network, after
/// weeks without power.
#[test]
fn a_clock_that_starts_in_1970_is_waited_for() {
    for away in [DAY, 20 * DAY] {
        let world = World::new();
        world.clock.set(5 * SECOND);
        let frond = world.open();
        sweep(&frond);
        assert_eq!(left(&frond), ALL);
        assert_eq!(commit(&frond, 1), world.begun);
        world.clock.set(world.begun + away);
        sweep(&frond);
        assert_eq!(frond.clock_state().is_doubted, away > 7 * DAY, "away {away}");
        world.clock.step(HOUR);
        sweep(&frond);
        assert_eq!(commit(&frond, 2), world.begun + away + HOUR);
    }
    let (disk, clock) = (SimDisk::new(1), SimClock::new());
    let right = clock.now_micros();
    clock.set(5 * SECOND);
    let frond = open(&disk, &clock);
    assert!(commit(&frond, 1) > 50 * YEAR, "a new directory begins with 2025");
    clock.set(right);
    assert_eq!(commit(&frond, 2), right);
}

#[test]
fn an_operator_accepts_what_the_clock_says_over_restarts() {
    for leap in [CENTURY, -10 * YEAR, 2 * YEAR] {
        let world = World::new();
        let frond = world.open();
        world.clock.set(world.begun + leap);
        assert!(frond.clock_state().is_doubted);
        assert!(!frond.accept_clock().expect("it is a date").is_doubted);
        // Killed: nothing is closed.
        let frond = open(&world.disk.crash(), &world.clock);
        assert!(!frond.clock_state().is_doubted, "leap {leap}");
        assert_eq!(frond.time_millis() * 1_000, world.begun + leap, "leap {leap}");
        // No commit is earlier than its parent.
        assert_eq!(commit(&frond, 1), world.begun + leap.max(0), "leap {leap}");
        sweep(&frond);
        assert_eq!(left(&frond), if leap < 0 { ALL } else { NOTHING }, "leap {leap}");
    }
    let world = World::new();
    let frond = world.open();
    world.clock.set(i64::MAX);
    assert_eq!(frond.accept_clock().expect_err("no date").code, Code::BadValue);
}

/// An earlier build may have written Sequences that are ahead of time as far as any clock brings
/// them.
#[test]
fn sequences_that_a_wrong_clock_pinned_are_no_hindrance() {
    let (disk, clock) = (SimDisk::new(1), SimClock::new());
    let now = clock.now_micros();
    clock.set(now + 200 * YEAR);
    let machine = frond_testkit::machine::machine(&disk, &clock, 1);
    let engine = Engine::open(&machine, EngineOptions::default()).expect("opens");
    let mut transaction = engine.begin();
    transaction.put(TreeId::SYSTEM, "q".into(), frond_tree::Value::inline("q")).expect("put");
    transaction.commit(frond_engine::Durability::Synced).expect("committed");
    engine.close().expect("closed");
    drop(engine);
    clock.set(now);
    let frond = open(&disk, &clock);
    assert!(frond.clock_state().is_doubted);
    frond.accept_clock().expect("it is a date");
    frond.close().expect("closed");
    drop(frond);
    let mut last = 0;
    for restart in 0..20 {
        let frond = open(&disk, &clock);
        assert!(!frond.clock_state().is_doubted, "restart {restart}");
        assert_eq!(commit(&frond, restart), clock.now_micros());
        assert!(last < frond.operation_time().0, "restart {restart}");
        last = frond.operation_time().0;
        clock.step(DAY);
        frond.close().expect("closed");
    }
    assert!(u64::MAX - last > 1 << 57, "there are enough left: {last:x}");
}

/// Everything that asks a clock, at times that no clock should say.
#[test]
fn no_time_is_a_panic() {
    let extremes = [
        i64::MIN,
        i64::MIN + 1,
        -1,
        0,
        1,
        999_999,
        i64::from(i32::MAX) * SECOND,
        i64::from(u32::MAX) * SECOND,
        (i64::from(u32::MAX) + 1) * SECOND,
        253_402_300_800 * SECOND,
        i64::MAX - 1,
        i64::MAX,
    ];
    let world = World::new();
    for (position, time) in extremes.into_iter().enumerate() {
        let frond = world.open();
        let id = position as i32;
        for time in [time, world.begun, time] {
            world.clock.set(time);
            let shop = shop(&frond);
            let now = "{'$currentDate': {'d': true, 't': {'$type': 'timestamp'}}}";
            let upsert =
                |filter: &str| frond_db::UpdateStatement { upsert: true, ..statement(filter, now) };
            update(&shop, "times", upsert(&format!("{{'_id': {id}}}")));
            update(&shop, "times", upsert("{'n': {'$lt': 0}}"));
            let empty = document! { "t": Value::Timestamp(Timestamp(0)) };
            try_insert(&shop, "times", &[empty]);
            let filter = "{'$expr': {'$lte': ['$d', '$$NOW']}}";
            let found: Vec<DocumentBuf> =
                run(&shop, "times", &request(filter)).expect("the request is right");
            let mine = found.iter().any(|document| document.get("_id") == Some(Value::Int32(id)));
            assert!(mine, "$currentDate and $$NOW follow the clock, at {time}");
            sweep(&frond);
            assert!(frond.clock_state().describe().len() > 10);
            commit(&frond, id * 10);
        }
        assert_eq!(left(&frond), ALL, "at {time}");
        world.clock.set(world.begun);
        frond.close().expect("closed");
    }
    let frond = world.open();
    assert!(second(&frond) - world.begun / SECOND < 3_600, "no Sequence was drawn along");
}
