//! Words that say nothing by themselves.
//!
//! All lists are Snowball's (BSD licence). The crate `stop-words` has them as others edited them;
//! what it has for English isn't Snowball's any more (it has parts of contractions, and "can",
//! "will", "just"), so the original stands here.

/// English, in the order of Snowball's list (snowballstem.org, algorithms/english/stop.txt).
const ENGLISH: &str = "\
     i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she
     her hers herself it its itself they them their theirs themselves
     what which who whom this that these those am is are was were be been being have has had having
     do does did doing would should could ought
     i'm you're he's she's it's we're they're i've you've we've they've i'd you'd he'd she'd we'd
     they'd i'll you'll he'll she'll we'll they'll
     isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't wouldn't shan't
     shouldn't can't cannot couldn't mustn't let's that's who's what's here's there's when's where's
     why's how's
     a an the and but if or because as until while of at by for with about against between into
     through during before after above below to from up down in out on off over under again further
     then once
     here there when where why how all any both each few more most other some such no nor not only
     own same so than too very";

/// The stop words of a language, by both its names; none for `none`.
pub(super) fn of(name: &str, short_name: &str) -> impl Iterator<Item = &'static str> {
    let (english, others) = match name {
        "english" => (ENGLISH, &[][..]),
        // Norwegian stands there under the code of both its written forms.
        "norwegian" => ("", ["no", "nb"].iter().find_map(stop_words::lookup).unwrap_or_default()),
        _ => ("", stop_words::lookup(short_name).unwrap_or_default()),
    };
    english.split_whitespace().chain(others.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn languages_have_theirs() {
        let english: BTreeSet<&str> = of("english", "en").collect();
        assert_eq!(english.len(), 174);
        assert!(english.contains("then") && !english.contains("will"));
        assert!(of("norwegian", "nb").count() > 100);
        assert_eq!(of("none", "none").count(), 0);
    }
}
