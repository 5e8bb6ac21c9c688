//! Suggests the command that a client may have meant.

/// The beginning of the names of Frond's own commands.
const OWN: &str = "frond";
/// The longest word that is compared: no command's name is longer.
const LETTERS_MAX: usize = 40;
/// The most letters of a long word that may be wrong: with more it is another word.
const WRONG_MAX: usize = 3;

/// `; did you mean 'frondCommit'?`, or nothing if none of `names` is nearly so.
pub fn did_you_mean<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    match nearest(word, names) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => String::new(),
    }
}

/// The nearest name: equal but for upper and lower case or without `frond`, or with at most one
/// letter in three, and three in all, that is wrong, missing, superfluous or swapped.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    if LETTERS_MAX < letters {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let lower = name.to_lowercase();
        let bare = lower.strip_prefix(OWN).unwrap_or(&lower);
        let distance = distance(&word, &lower).min(distance(&word, bare));
        let is_near = distance <= (letters / 3).min(WRONG_MAX)
            && best.is_none_or(|(least, _)| distance < least);
        if is_near {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns how many letters have to be changed, added, removed or swapped with their neighbour so
/// that `a` becomes `b`, where no letter is changed twice (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for row in 1..=a.len() {
        let mut now = vec![row];
        for column in 1..=b.len() {
            let differs = usize::from(a[row - 1] != b[column - 1]);
            let mut least = (last[column] + 1).min(now[column - 1] + 1);
            least = least.min(last[column - 1] + differs);
            let is_swapped =
                1 < row && 1 < column && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1];
            if is_swapped {
                least = least.min(before_last[column - 2] + 1);
            }
            now.push(least);
        }
        before_last = std::mem::replace(&mut last, now);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abd", 1),
            ("abc", "acb", 1),
            ("ab", "ba", 1),
            ("abcd", "bcd", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    fn of_the_table(word: &str) -> Option<&'static str> {
        nearest(word, crate::commands::names())
    }

    #[test]
    fn near_misses_get_a_suggestion() {
        for (word, expected) in [
            ("frondComit", Some("frondCommit")),
            ("frondcommit", Some("frondCommit")),
            ("merge", Some("frondMerge")),
            ("Ping", Some("ping")),
            ("agregate", Some("aggregate")),
            ("isnert", Some("insert")),
            ("foo", None),
            ("", None),
            ("atlasVersion", None),
            ("getFreeMonitoringStatus", None),
            ("shardCollection", None),
        ] {
            assert_eq!(of_the_table(word), expected, "{word}");
        }
        assert_eq!(of_the_table(&"insert".repeat(1_000)), None);
    }
}
