//! Words that say nothing by themselves.
//!
//! All lists are Snowball's (BSD licence). The crate `stop-words` has them as others edited them; what it
//! has for English isn't Snowball's any more (it has parts of contractions, and "can", "will", "just"), so
//! the original stands here.

/// English, sorted.
#[rustfmt::skip]
const ENGLISH: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "am", "an", "and", "any", "are",
    "aren't", "as", "at", "be", "because", "been", "before", "being", "below", "between", "both",
    "but", "by", "can't", "cannot", "could", "couldn't", "did", "didn't", "do", "does", "doesn't",
    "doing", "don't", "down", "during", "each", "few", "for", "from", "further", "had", "hadn't",
    "has", "hasn't", "have", "haven't", "having", "he", "he'd", "he'll", "he's", "her", "here",
    "here's", "hers", "herself", "him", "himself", "his", "how", "how's", "i", "i'd", "i'll",
    "i'm", "i've", "if", "in", "into", "is", "isn't", "it", "it's", "its", "itself", "let's",
    "me", "more", "most", "mustn't", "my", "myself", "no", "nor", "not", "of", "off", "on",
    "once", "only", "or", "other", "ought", "our", "ours", "ourselves", "out", "over", "own",
    "same", "shan't", "she", "she'd", "she'll", "she's", "should", "shouldn't", "so", "some",
    "such", "than", "that", "that's", "the", "their", "theirs", "them", "themselves", "then",
    "there", "there's", "these", "they", "they'd", "they'll", "they're", "they've", "this",
    "those", "through", "to", "too", "under", "until", "up", "very", "was", "wasn't", "we",
    "we'd", "we'll", "we're", "we've", "were", "weren't", "what", "what's", "when", "when's",
    "where", "where's", "which", "while", "who", "who's", "whom", "why", "why's", "with", "won't",
    "would", "wouldn't", "you", "you'd", "you'll", "you're", "you've", "your", "yours",
    "yourself", "yourselves",
];

/// The stop words of a language, by both its names; none for `none`.
pub(super) fn of(name: &str, short_name: &str) -> impl Iterator<Item = &'static str> {
    let words = match name {
        "english" => ENGLISH,
        // Norwegian stands there under the code of both its written forms.
        "norwegian" => ["no", "nb"].iter().find_map(stop_words::lookup).unwrap_or_default(),
        _ => stop_words::lookup(short_name).unwrap_or_default(),
    };
    words.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_is_sorted_and_others_are_there() {
        assert!(ENGLISH.is_sorted_by(|left, right| left < right));
        assert_eq!(ENGLISH.len(), 174);
        assert!(of("norwegian", "nb").count() > 100);
        assert_eq!(of("none", "none").count(), 0);
    }
}
