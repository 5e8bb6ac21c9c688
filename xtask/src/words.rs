//! Names that a crate had before it took the field's: docs/glossary.md has the present ones. And
//! words in comments and pages that leave the actor without a name.

use std::path::Path;

/// A crate and names that its types, modules and functions don't have any more.
const REFUSED: &[(&str, &str)] = &[
    (
        "engine",
        "courtesy Courtesy let_others_go in_bits pace Pace Turn wait_for_room steady \
         SteadyStore trouble Troubles Pause rounds Rounds work Work born Born Births turnover \
         intents Intents claims Claims Manner Standing Beginning Footprint AsItIs own_writes \
         OwnWrites reads move_snapshot Era Improvement opening spares settle weigh Told Place \
         growth terms KeptSegments Term leave_out leave_out_record turned_bit turned_byte \
         turn_bit_back patience Patience ForLog moments past PastError past_at past_from \
         await_past held_states HeldStates Held Ended kept_states KeptStates KeptState \
         trim_kept_states reach Reach Come slow space Space DiskRoom quiet Quiet send_whole \
         swap_whole note_whole WHOLE_SUFFIX directory directory_chunks copy_directory Horizon \
         Line Ahead ForeignWalk MembersHave Gathered foreign_chunks take_along_foreign_chunks \
         for_each_foreign change_note ChangeNote ChangeContent LoggedChange ChangeBytes \
         ToldRecord AtWork AppliedBefore NoSpares Whole Sought counted Counted \
         commit_unawaited end_unawaited told_values whole_where_told FLAG_TELLS is_untold \
         commit_unless_told is_told tell_line line_up is_stale_in_line Before",
    ),
    (
        "quorum",
        "view View GoingOn going_on surely_applied NotDone place_to_cut cut cut_at \
         CUT_BYTES_MIN cut_term compare_with_cut Up is_told told_held tell_beside tell_doubt",
    ),
    ("doc", "Place Met Found Learnt Left Known Spot Walked"),
    ("script", "Asked NotRun"),
    ("vcs", "Carried Skipped Getting Undone Kept Turn"),
    (
        "cli",
        "Every Reach Told Carrier Blanks Wrong Shown Telling Maker Drawn Asked tell told tell_hook \
         told_after told_failures says said_by is_there what_to_do",
    ),
    (
        "store",
        "Glimpse Glimpsed glimpse fetch_glimpse Kept parts Parts missed Missed bypass Bypass \
         SlowShare ahead Ahead Lent Buffers room Room Taken lane Lane near bits Bits notes \
         Notes Births Moment FramePlace Collection Collected settle weigh Place Found \
         BucketDepot Depot DepotError depot home HomeDisk HomeOptions HomeFile flights \
         Flights Flight refusal Lost foreign foreign_file Entered needed reported Reported \
         sending Sending Examined Counted Rescued Scrubbed Aside AsideWhy MostlySlow \
         SecondLook Luck Around Pace is_told tell_lost tell_unnamed collect_paced \
         reclaim_paced",
    ),
    ("tree", "trunk Trunk heads Heads Alone Glimpsed"),
    (
        "query",
        "Told Offer Demand Noted noted_calls NotedCalls Ahead Asked asked_by_elements Untold \
         by_reach asks_the_same carried divided Gather Gathered forward Nothing Kept Arounds \
         Around Trying KeyStanding",
    ),
    (
        "db",
        "Gate Role Moment TreePlace PlainPlace Patience Told Met Place Found work Work StatementWork \
         ScanTold Sight Filed Growing ending Ending recut Moving Lazily Shown put_aside PutAside \
         Teller Becoming Telling ToldChange ToldPlaces Written Needs Between Ran Gathered \
         InOrder together Together Planned Seen",
    ),
    (
        "server",
        "Intake Hold Room Share Places patience Heard Deed Asked Needs Rest Hit Asking Sent \
         Taking Unread Worded Others Occasion Spent Written GoesOn Proved Says Standing \
         Offers Ask Journey fenced gather Told Named Own Each Way Travelled Ends Stop told_of \
         tell tells told says told_bytes told_path told_millis tells_of heard_of tell_if_slow",
    ),
    ("remote", "Intake Share patience race RaceReport PlaceUrl"),
];
/// Words that leave the actor without a name: say reader, committer, client, another transaction
/// instead.
const NAMELESS: &[&str] = &["whoever", "nobody", "somebody"];
/// The same, without an antecedent.
const NAMELESS_PHRASES: &[&str] = &["for who ", "told by who "];
/// A function is named by what it does, a test by what holds: not by the question.
const QUESTIONS: &[&str] = &["what_is_", "what_was_", "who_", "whoever_", "nobody_"];
/// The keywords that define a name.
const KINDS: &[&str] = &["struct ", "enum ", "trait ", "type ", "mod ", "fn "];

/// Returns a line for each name that is used again.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for path in crate::tracked(root, ".md")? {
        let shown = path.display().to_string();
        if shown.starts_with("docs/notes/") {
            continue;
        }
        for (position, line) in crate::read(root, &path)?.lines().enumerate() {
            if let Some(word) = nameless_in(line) {
                let line = position + 1;
                faults.push(format!("{shown}:{line}: \"{word}\": who is it? a reader, a client?"));
            }
        }
    }
    for path in crate::tracked(root, ".rs")? {
        let shown = path.display().to_string();
        let text = crate::read(root, &path)?;
        for (position, line) in text.lines().enumerate() {
            if let Some(word) = nameless(line).filter(|_| !shown.starts_with("xtask/")) {
                let line = position + 1;
                faults.push(format!("{shown}:{line}: \"{word}\": who is it? a reader, a client?"));
            }
        }
        for (position, line) in text.lines().enumerate() {
            let Some(name) = defined(line) else { continue };
            if QUESTIONS.iter().any(|question| name.starts_with(question)) {
                let line = position + 1;
                faults.push(format!("{shown}:{line}: {name}: name what it does, or what holds"));
            }
        }
        let Some((_, refused)) =
            REFUSED.iter().find(|(name, _)| shown.starts_with(&format!("crates/{name}/src/")))
        else {
            continue;
        };
        for (position, line) in text.lines().enumerate() {
            let Some(name) = defined(line) else { continue };
            if refused.split_whitespace().any(|one| one == name) {
                let line = position + 1;
                faults.push(format!("{shown}:{line}: {name} has another name: docs/glossary.md"));
            }
        }
    }
    Ok(faults)
}

/// The word in a line's comment that leaves the actor without a name.
fn nameless(line: &str) -> Option<&'static str> {
    nameless_in(line.split_once("//")?.1)
}

fn nameless_in(prose: &str) -> Option<&'static str> {
    let mut words = prose.split(|letter: char| !letter.is_alphanumeric());
    let word = words.find_map(|word| NAMELESS.iter().find(|it| it.eq_ignore_ascii_case(word)));
    word.or_else(|| NAMELESS_PHRASES.iter().find(|phrase| prose.contains(**phrase))).copied()
}

/// The name that a line defines, if it does.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = KINDS.iter().find_map(|kind| {
        let (before, rest) = line.split_once(kind)?;
        let is_head =
            before.split_whitespace().all(|word| word.starts_with("pub") || word == "const");
        is_head.then_some(rest)
    })?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}
