//! The branches that a privilege is for: `dev/*`.

/// A branch's name in which each `*` stands for any characters, slashes too.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BranchPattern(String);

impl BranchPattern {
    /// A pattern; `None` if it is empty.
    pub fn new(text: &str) -> Option<BranchPattern> {
        (!text.is_empty()).then(|| BranchPattern(text.to_owned()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a branch is meant.
    pub fn matches(&self, branch: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = branch.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        // The leftmost place for each part leaves the most for the others.
        for part in parts {
            match rest.find(part) {
                Some(position) => rest = &rest[position + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, branch, expected) in [
            ("main", "main", true),
            ("main", "main2", false),
            ("main", "mai", false),
            ("dev/*", "dev/a", true),
            ("dev/*", "dev/a/b", true),
            ("dev/*", "dev/", true),
            ("dev/*", "dev", false),
            ("dev/*", "xdev/a", false),
            ("*", "", true),
            ("*", "main", true),
            ("*x", "ax", true),
            ("*x", "xa", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "abbc", true),
            ("a*b*c", "ac", false),
            ("a*b*b", "ab", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
        ] {
            let found = BranchPattern::new(pattern).expect("not empty").matches(branch);
            assert_eq!(found, expected, "{pattern} {branch}");
        }
        assert!(BranchPattern::new("").is_none());
    }
}
