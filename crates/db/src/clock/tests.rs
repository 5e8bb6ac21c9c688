//! The behaviour of a believed clock when the wall clock leaps, stops or goes back.

use frond_testkit::SimClock;

use super::*;

/// 2026, where a [`SimClock`] begins.
fn known_clock() -> (SimClock, BelievedClock, i64) {
    let clock = SimClock::new();
    let begun = clock.now_micros();
    let believed = BelievedClock::new(Arc::new(clock.clone()));
    believed.begin(Some(Known { believed_micros: begun, doubted_micros: None }));
    (clock, believed, begun)
}

/// Checks whether a clock that leaps by `ahead` is doubted: at once, and after an hour.
fn check(ahead: i64, is_doubted: [bool; 2]) {
    let (clock, believed, begun) = known_clock();
    clock.set(begun.saturating_add(ahead));
    let look = |passed: i64, is_doubted: bool| {
        let found = believed.look();
        assert_eq!(found.is_doubted, is_doubted, "{ahead} ahead, after {passed}");
        let expected = begun + passed + if is_doubted { 0 } else { ahead };
        assert_eq!(found.believed_micros, expected, "{ahead} ahead, after {passed}");
    };
    look(0, is_doubted[0]);
    clock.step(HOUR / 2);
    look(HOUR / 2, is_doubted[0]);
    clock.step(HOUR / 2);
    look(HOUR, is_doubted[1]);
}

#[test]
fn a_leap_is_believed_at_once_or_after_an_hour_or_never() {
    for ahead in [0, 1, SECOND, -HOUR, -BEHIND_MAX, HOUR, 3 * DAY, AHEAD_SOON_MAX] {
        check(ahead, [false, false]);
    }
    for ahead in [AHEAD_SOON_MAX + 1, 365 * DAY, AHEAD_LATE_MAX] {
        check(ahead, [true, false]);
    }
    let (_, _, begun) = known_clock();
    for ahead in [AHEAD_LATE_MAX + 1, 36_525 * DAY, -BEHIND_MAX - 1, -begun, -56 * 365 * DAY] {
        check(ahead, [true, true]);
    }
}

/// An hour by the doubted clock itself counts from one process to the next, and a leap of another
/// width begins anew.
#[test]
fn a_long_pause_is_believed_by_the_second_process_that_sees_it() {
    let (clock, _, begun) = known_clock();
    let process = |known: Known| {
        let believed = BelievedClock::new(Arc::new(clock.clone()));
        believed.begin(Some(known));
        (believed.look().is_doubted, believed.known().expect("it began with something"))
    };
    let first = Known { believed_micros: begun, doubted_micros: None };
    clock.set(begun + 365 * DAY);
    let (is_doubted, known) = process(first);
    assert!(is_doubted && known.believed_micros == begun);
    clock.step(HOUR - SECOND);
    let (is_doubted, known) = process(known);
    assert!(is_doubted, "it hasn't stood for an hour");
    clock.step(DAY);
    let (is_doubted, later) = process(known);
    assert!(!is_doubted && later.believed_micros == clock.now_micros());
    // A clock that was corrected meanwhile is believed, and the doubt is forgotten.
    clock.set(begun + 2 * HOUR);
    let (is_doubted, later) = process(known);
    assert!(!is_doubted && later.doubted_micros.is_none());
    // One that leapt again isn't.
    clock.set(begun + 36_525 * DAY);
    assert!(process(known).0);
}

#[test]
fn a_clock_that_is_corrected_within_an_hour_did_nothing() {
    let (clock, believed, begun) = known_clock();
    for wrong in [0, begun + 300 * DAY, begun + 36_525 * DAY, i64::MAX, i64::MIN, -1] {
        let before = believed.look().believed_micros;
        clock.set(wrong);
        assert!(believed.look().is_doubted, "{wrong}");
        clock.set(before);
        clock.step(10 * SECOND);
        let found = believed.look();
        assert!(!found.is_doubted && found.believed_micros == before + 10 * SECOND, "{wrong}");
    }
}

#[test]
fn accepted_times_are_believed_in_both_directions() {
    let (clock, believed, begun) = known_clock();
    for accepted in [begun + 36_525 * DAY, begun, 0, begun - 3_650 * DAY] {
        clock.set(accepted);
        assert!(believed.look().is_doubted, "{accepted}");
        assert!(believed.accept());
        clock.step(SECOND);
        let expected = accepted + SECOND;
        let found = believed.look();
        assert!(!found.is_doubted && found.believed_micros == expected, "{accepted}");
    }
    for refused in [-1, i64::MIN, i64::MAX, ACCEPTED_MAX] {
        clock.set(refused);
        assert!(!believed.accept(), "{refused}");
    }
}

#[test]
fn a_new_directory_believes_what_is_possible() {
    for (wall, is_doubted) in [
        (0, true),
        (-1, true),
        (i64::MIN, true),
        (i64::MAX, true),
        (POSSIBLE_MIN - STEP_MICROS as i64, true),
        (POSSIBLE_MIN + STEP_MICROS as i64, false),
        (POSSIBLE_MAX - 1, false),
        (POSSIBLE_MAX, true),
    ] {
        let clock = SimClock::new();
        let right = clock.now_micros();
        clock.set(wall);
        let believed = BelievedClock::new(Arc::new(clock.clone()));
        believed.begin(None);
        let found = believed.look();
        assert_eq!(found.is_doubted, is_doubted, "{wall}");
        let expected = if is_doubted { POSSIBLE_MIN } else { wall };
        assert_eq!(found.believed_micros, expected, "{wall}");
        assert_eq!(believed.known().is_some(), !is_doubted, "{wall}");
        if is_doubted {
            // The first one that is possible is taken, however far.
            clock.set(right);
            assert!(!believed.look().is_doubted, "{wall}");
        }
    }
}

/// The believed time never leaps by itself: between two looks it goes on as the steady clock does,
/// or becomes the clock's reading.
#[test]
fn random_clocks_leave_what_is_believed_where_time_has_brought_it() {
    frond_testkit::random::for_seeds(200, |mut random| {
        let (clock, believed, _) = known_clock();
        for _ in 0..100 {
            let before = believed.look();
            let passed = random.below(3 * HOUR as usize) as i64;
            let set = match random.below(8) {
                0 => Some(random.next().cast_signed()),
                1 => Some(before.believed_micros - random.below(40_000 * DAY as usize) as i64),
                2 => Some(before.believed_micros + random.below(40_000 * DAY as usize) as i64),
                3 => Some(before.believed_micros),
                _ => None,
            };
            if let Some(set) = set {
                clock.set(set);
            }
            clock.step(passed);
            let after = believed.look();
            let expected = before.believed_micros + passed;
            match after.is_doubted {
                true => assert_eq!(after.believed_micros, expected),
                false => {
                    let ahead = after.believed_micros - expected;
                    assert!((-BEHIND_MAX..=AHEAD_LATE_MAX).contains(&ahead));
                    assert_eq!(after.believed_micros, clock.now_micros());
                }
            }
        }
    });
}
