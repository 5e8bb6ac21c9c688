//! Names that a crate had before it took the field's: docs/glossary.md has the present ones. Words
//! of conversation, of which no crate makes a name. And words in comments and pages that leave the
//! actor without a name.

use std::path::Path;

use crate::imports::bare;

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
         commit_unless_told is_told tell_line line_up is_stale_in_line Before ask_while_folding \
         WhenAsked tell_findings ASKED_EVERY",
    ),
    (
        "quorum",
        "view View GoingOn going_on surely_applied NotDone place_to_cut cut cut_at \
         CUT_BYTES_MIN cut_term compare_with_cut Up is_told told_held tell_beside tell_doubt",
    ),
    ("doc", "Place Met Found Learnt Left Known Spot Walked"),
    ("script", "Asked WantedResult NotRun"),
    ("vcs", "Carried Skipped Getting Undone Kept Turn open_as_it_is tell_back told_bytes"),
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
         Around Trying KeyStanding Meeting ask_on_way asked_before meet FLAG_UNTOLD",
    ),
    (
        "db",
        "Gate Role Moment TreePlace PlainPlace Patience Told Met Place Found work Work StatementWork \
         ScanTold Sight Filed Growing ending Ending recut Moving Lazily Shown put_aside PutAside \
         Teller Becoming Telling ToldChange ToldPlaces Written Needs Between Ran Gathered \
         InOrder together Together Planned Seen is_there as_it_is_now asked_indexes told_places \
         asking into_asked",
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
/// Nothing is named by what code would say to code: it reports, records, requests, needs, visits.
const SPOKEN: &[&str] =
    &["told", "untold", "tell", "tells", "telling", "teller", "asked", "said", "met"];
/// Those of them that aren't a part of a longer name, either.
const SPOKEN_PARTS: &[&str] = &["told", "untold", "tell", "tells", "telling", "teller"];
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
        let found = faults_of(&shown, &text);
        faults.extend(found.into_iter().map(|(line, fault)| format!("{shown}:{line}: {fault}")));
    }
    Ok(faults)
}

/// The faults of a source file, with their lines.
fn faults_of(shown: &str, text: &str) -> Vec<(usize, String)> {
    let refused =
        REFUSED.iter().find(|(name, _)| shown.starts_with(&format!("crates/{name}/src/")));
    let refused: Vec<&str> =
        refused.iter().flat_map(|(_, names)| names.split_whitespace()).collect();
    let mut faults = Vec::new();
    for (position, line) in text.lines().enumerate() {
        if let Some(word) = nameless(line).filter(|_| !shown.starts_with("xtask/")) {
            faults.push((position + 1, format!("\"{word}\": who is it? a reader, a client?")));
        }
        let Some(name) = defined(line) else { continue };
        if QUESTIONS.iter().any(|question| name.starts_with(question)) {
            faults.push((position + 1, format!("{name}: name what it does, or what holds")));
        }
        if refused.contains(&name) {
            faults.push((position + 1, format!("{name} has another name: docs/glossary.md")));
        }
    }
    for (position, line) in bare(text).lines().enumerate() {
        if let Some(name) = names_in(line).find(|name| is_spoken(name)) {
            faults.push((position + 1, format!("{name}: say what is reported or needed")));
        }
    }
    faults
}

fn names_in(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

/// Whether a name is a word of conversation, or has a part that is: `is_told`, `ToldCount`.
fn is_spoken(name: &str) -> bool {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() && name.contains(char::is_lowercase) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| letter != '_') {
            part.extend(letter.to_lowercase());
        }
    }
    SPOKEN.contains(&name) || parts.iter().any(|part| SPOKEN_PARTS.contains(&&**part))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_conversation_are_found_in_names_alone() {
        for name in ["told", "asked", "is_told", "ToldCount", "FLAG_UNTOLD", "tell_of"] {
            assert!(is_spoken(name), "{name}");
        }
        for name in ["assert_met", "an_address_is_asked", "retell_x", "stold", "Metadata"] {
            assert!(!is_spoken(name), "{name}");
        }
        let code = bare("let a = \"told\"; // told\nlet b = \"told\n\";\nlet told = 1;\n");
        let found: Vec<_> =
            code.lines().enumerate().filter(|(_, line)| names_in(line).any(is_spoken)).collect();
        assert_eq!(found.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [3]);
    }
}
