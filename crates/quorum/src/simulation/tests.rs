//! What holds for every seed, and that planted defects don't.

use std::panic::{AssertUnwindSafe, catch_unwind};

use frond_testkit::random::seeds;

use super::*;

/// Sets that live without a fault of ours.
#[test]
fn whatever_happens_nothing_is_lost_or_doubled() {
    let mut sums = [0; 4];
    for seed in seeds(400) {
        let ended = match World::new(seed, None).run() {
            Ok(ended) => ended,
            Err(Violation(what)) => panic!("FROND_SEED={seed}: {what}"),
        };
        let counts = [
            ended.chosen.len(),
            ended.acknowledged.len(),
            ended.leader_count(),
            ended.read_count as usize,
        ];
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let [committed, acknowledged, leaders, reads] = sums;
    eprintln!(
        "{committed} committed, {acknowledged} acknowledged, {leaders} leaders, {reads} reads"
    );
}

#[test]
fn a_seed_repeats_a_life() {
    for seed in seeds(10) {
        let [first, second] = [(), ()].map(|()| World::new(seed, None).run());
        let (first, second) = (first.expect("it lives"), second.expect("it lives"));
        assert_eq!(first.chosen, second.chosen);
        assert_eq!(first.acknowledged, second.acknowledged);
    }
}

/// How many seeds it takes to find a defect.
fn seeds_to_find(defect: Defect) -> (u64, String) {
    for seed in 0..10_000 {
        let run = AssertUnwindSafe(|| World::new(seed, Some(defect)).run().map(drop));
        match catch_unwind(run) {
            Ok(Ok(())) => {}
            Ok(Err(Violation(what))) => return (seed + 1, what),
            // The library, or an assertion of ours, has found it.
            Err(_) => return (seed + 1, "a panic".to_owned()),
        }
    }
    panic!("{defect:?} isn't found");
}

/// What would have to happen is too rare (Raft's figure 8): one in thousands of lives meets it.
/// They must be steered there.
#[test]
fn a_commit_of_an_earlier_term_is_not_found_yet() {
    for seed in 0..50 {
        assert!(World::new(seed, Some(Defect::PriorTermCommit)).run().is_ok());
    }
}

macro_rules! found {
    ($($name:ident: $defect:ident,)*) => {$(
        #[test]
        fn $name() {
            let (seeds, what) = seeds_to_find(Defect::$defect);
            eprintln!("{:?}: found with seed {seeds}: {what}", Defect::$defect);
        }
    )*};
}

found! {
    an_acknowledgement_before_the_sync_is_found: AckBeforeSync,
    a_vote_that_is_not_synced_is_found: UnsyncedVote,
    a_vote_that_is_forgotten_is_found: ForgottenVote,
    a_learner_that_counts_is_found: LearnerCounted,
    an_id_that_is_reused_is_found: ReusedId,
    an_end_that_is_trusted_is_found: EndTrusted,
    a_doubtful_vote_that_counts_is_found: DoubtCounted,
    a_vote_that_is_lost_with_the_end_is_found: VoteInLog,
    a_commit_that_is_forgotten_is_found: ForgottenCommit,
    a_configuration_that_is_stale_is_found: StaleConfiguration,
    a_copy_of_what_is_not_committed_is_found: CopyAhead,
    a_ballot_that_a_copy_forgets_is_found: ForgottenBallot,
    a_read_that_is_stale_is_found: StaleRead,
    an_acknowledgement_by_one_is_found: AckedByOne,
    a_proposal_that_is_made_again_is_found: ProposedAgain,
}
