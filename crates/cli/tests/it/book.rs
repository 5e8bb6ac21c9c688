//! The pages of the book that show commands are run, as docs/walkthrough.md is: each command must
//! print what is shown.

use crate::{Directory, walkthrough};

/// Pages, and how many commands each shows at least.
const PAGES: &[(&str, &str, usize)] = &[
    ("five-minutes", include_str!("../../../../docs/five-minutes.md"), 7),
    ("conflicts", include_str!("../../../../docs/conflicts.md"), 8),
    ("tests", include_str!("../../../../docs/tests.md"), 4),
    ("from-mongodb", include_str!("../../../../docs/from-mongodb.md"), 2),
    ("from-git", include_str!("../../../../docs/from-git.md"), 9),
    ("agents", include_str!("../../../../AGENTS.md"), 5),
];

#[test]
fn the_pages_are_true() {
    let mut wrong = String::new();
    for (name, page, count_min) in PAGES {
        let directory = Directory::new();
        let steps = walkthrough::read(page, &directory);
        assert!(*count_min <= steps.len(), "{name}: {} commands", steps.len());
        for step in &steps {
            let difference = walkthrough::difference(&directory, step, &str::to_owned);
            if !difference.is_empty() {
                wrong.push_str(&format!("docs/{name}.md:\n{difference}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
