//! The pages of the book that show commands are run, as docs/walkthrough.md is: each command must
//! print what is shown.

use crate::serving::Server;
use crate::{Directory, frond_with, walkthrough};

const README: &str = include_str!("../../../../README.md");

/// Pages, and how many commands each shows at least.
const PAGES: &[(&str, &str, usize)] = &[
    ("five-minutes", include_str!("../../../../docs/five-minutes.md"), 7),
    ("conflicts", include_str!("../../../../docs/conflicts.md"), 8),
    ("recipes", include_str!("../../../../docs/recipes.md"), 20),
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

/// The README's commands of the shell are run as they stand, while a server has the directory.
#[test]
fn the_shell_of_the_readme_beside_a_server() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\":1}\n").ok();
    let server = Server::start(&directory);
    let block = README.split("The same from the shell").nth(1).unwrap();
    let block = block.lines().skip_while(|line| !line.starts_with("    "));
    let lines: Vec<_> = block.map_while(|line| line.strip_prefix("    ")).collect();
    assert_eq!(lines.len(), 9, "{lines:?}");
    let output: Vec<_> = lines.iter().flat_map(|line| walkthrough::run(&directory, line)).collect();
    let output = output.join("\n");
    for expected in ["price: 30 → 15", "moved forward to", "first items", "half price"] {
        assert!(output.contains(expected), "{output}");
    }
    assert!(!output.contains("frond: "), "{output}");
    server.stop();
}
