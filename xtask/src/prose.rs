//! Pages' lines end where code's do: `cargo xtask wrap` breaks longer ones, `tidy` refuses them.
//!
//! Only prose is broken: paragraphs, and items of lists with what belongs to them. Tables,
//! headings, quotations, code and what has hard line breaks stay as they are. A block whose lines
//! are all short enough isn't touched. Code within a line isn't broken, and no line begins with
//! what would make a list, a heading or a table of it. SHORTCOMINGS.md has an item a line, so that
//! each says one thing; only a link may make it two.

use std::path::Path;

const COLUMNS: usize = 100;
/// The length above which code within a line is broken after all.
const CODE_COLUMNS_MAX: usize = 70;
/// mdBook's list of pages: each entry is a line.
const LIST: &str = "docs/SUMMARY.md";
/// The beginning of the lines by which `bless` knows the code of a format.
const CODE: &str = "Code:";
/// The page with an item a line.
const ITEMS: &str = "SHORTCOMINGS.md";

/// Returns a line for each page that has lines to break.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for path in pages(root)? {
        let text = crate::read(root, &path)?;
        let wrapped = wrapped(&text);
        if let Some(position) = text.lines().zip(wrapped.lines()).position(|(a, b)| a != b) {
            let place = format!("{}:{}", path.display(), position + 1);
            faults.push(format!("{place}: more than {COLUMNS} columns: cargo xtask wrap"));
        }
        if path == Path::new(ITEMS) {
            faults.extend(long_items(&text).into_iter().map(|position| {
                format!(
                    "{ITEMS}:{}: an item of more than a line: what is told besides belongs to \
                         a page of docs/",
                    position + 1
                )
            }));
        }
    }
    Ok(faults)
}

/// Breaks the lines that are too long, in all pages.
pub fn write(root: &Path) -> Result<(), String> {
    for path in pages(root)? {
        let text = crate::read(root, &path)?;
        let wrapped = wrapped(&text);
        if wrapped != text {
            println!("wrap: {}", path.display());
            std::fs::write(root.join(&path), wrapped)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Returns where an item goes on behind its first line, and not because of a link.
fn long_items(page: &str) -> Vec<usize> {
    let lines: Vec<&str> = page.lines().collect();
    let goes_on = |at: &usize| lines[*at].starts_with("  ") && !lines[at - 1].contains('[');
    (1..lines.len()).filter(goes_on).collect()
}

fn pages(root: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let mut pages = crate::tracked(root, ".md")?;
    pages.retain(|page| page != Path::new(LIST));
    Ok(pages)
}

/// A page with its long lines broken.
fn wrapped(page: &str) -> String {
    let mut out = String::new();
    let mut block = Block::default();
    let (mut fence, mut is_generated, mut is_code, mut after_blank) = (None, false, false, true);
    for line in page.lines() {
        let inner = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| inner.starts_with(mark));
        let was_code = fence.is_some();
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        is_generated |= line.starts_with("<!-- table: ");
        let indent = line.len() - inner.len();
        is_code = (after_blank || is_code) && block.content_column(indent) + 4 <= indent;
        let stays = was_code || mark.is_some() || is_generated || is_code || is_mark_up(inner);
        if stays {
            block.flush(&mut out);
            out.push_str(line);
            out.push('\n');
        } else {
            if marker(inner).is_some() {
                block.flush(&mut out);
                block.begin_item(indent, inner);
            } else if after_blank {
                block.begin_paragraph(indent);
            }
            block.lines.push(line.to_owned());
        }
        is_generated &= line != "<!-- end -->";
        after_blank = inner.is_empty();
    }
    block.flush(&mut out);
    out
}

/// Whether a line is no prose: blank, a heading, a table's row, a quotation, HTML, a rule, or the
/// name of a format's code.
fn is_mark_up(line: &str) -> bool {
    let is_rule =
        3 <= line.len() && line.chars().all(|letter| ['-', '=', '*', '_'].contains(&letter));
    line.is_empty() || is_rule || line.starts_with(['#', '|', '>', '<']) || line.starts_with(CODE)
}

/// Returns how many columns the mark of a list's item takes, with the space behind it.
fn marker(line: &str) -> Option<usize> {
    let (mark, _) = line.split_once(' ')?;
    let number = mark.strip_suffix(['.', ')']);
    let is_number = number
        .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|it| it.is_ascii_digit()));
    (is_number || ["-", "*", "+"].contains(&mark)).then_some(mark.len() + 1)
}

/// The lines of a paragraph or of a list's item, as they are collected.
#[derive(Default)]
struct Block {
    lines: Vec<String>,
    /// The column at which lines after the first one begin.
    indent: usize,
    /// The column of the content of each open item, the outermost first.
    items: Vec<usize>,
}

impl Block {
    /// Returns where the content of the item begins to which a line with so much before it belongs.
    fn content_column(&self, indent: usize) -> usize {
        self.items.iter().rev().find(|column| **column <= indent).copied().unwrap_or(0)
    }

    fn begin_item(&mut self, indent: usize, line: &str) {
        self.items.retain(|column| *column <= indent);
        self.indent = indent + marker(line).unwrap_or(0);
        self.items.push(self.indent);
    }

    fn begin_paragraph(&mut self, indent: usize) {
        self.items.retain(|column| *column <= indent);
        self.indent = self.content_column(indent);
    }

    /// Writes what was collected, broken where a line of it is too long.
    fn flush(&mut self, out: &mut String) {
        let lines = std::mem::take(&mut self.lines);
        let is_short = lines.iter().all(|line| line.chars().count() <= COLUMNS);
        let has_breaks = lines.iter().any(|line| line.ends_with("  ") || line.ends_with('\\'));
        if is_short || has_breaks {
            lines.iter().for_each(|line| {
                out.push_str(line);
                out.push('\n');
            });
            return;
        }
        let first = lines.first().map_or(0, |line| line.len() - line.trim_start().len());
        let text = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let mut line = " ".repeat(first);
        let mut is_empty = true;
        for word in words(&text) {
            let fits = line.chars().count() + 1 + word.chars().count() <= COLUMNS;
            if !is_empty && !fits && !is_mark(&word) {
                out.push_str(line.trim_end());
                out.push('\n');
                line = " ".repeat(self.indent);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(&word);
            is_empty = false;
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Whether a line that begins with this word would be something else than prose.
fn is_mark(word: &str) -> bool {
    is_mark_up(word) || marker(&format!("{word} ")).is_some() || word.starts_with("```")
}

/// The parts of a text that stay together: words, and code within it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split(' ') {
        if word.is_empty() && !open {
            continue;
        }
        let joined = words.last().map_or(0, |last| last.chars().count()) + word.chars().count();
        match words.last_mut() {
            Some(last) if open && joined < CODE_COLUMNS_MAX => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_and_other_blocks_stay() {
        let long = "x ".repeat(60);
        let page = format!(
            "# {long}\n| {long} |\n```\n{long}\n```\n\n    {long}\n    {long}\n> {long}\n\n- a\n\n      {long}\n\
             <!-- table: a -->\n{long}\n<!-- end -->\nragged\nlines\n"
        );
        assert_eq!(wrapped(&page), page);
    }

    #[test]
    fn long_lines_are_broken_where_they_belong() {
        let words = "word ".repeat(25);
        let page = format!("- {words}\n  and\n\n10. {words}\n\n    of ten {words}\n\n{words}\n");
        let broken = wrapped(&page);
        assert!(broken.lines().all(|line| line.len() <= COLUMNS), "{broken}");
        let begins: Vec<&str> =
            broken.lines().map(|line| line.split_at(line.len().min(6)).0).collect();
        let expected = [
            "- word", "  word", "", "10. wo", "    wo", "", "    of", "    wo", "", "word w",
            "word w",
        ];
        assert_eq!(begins, expected);
        assert_eq!(wrapped(&broken), broken);
        let flat = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(flat(&broken), flat(&page));
    }

    #[test]
    fn items_are_one_line() {
        let page = "# A\n\n- one\n- two, with a [link to\n  a page](a.md)\n- three\n  and more\n";
        assert_eq!(long_items(page), [6]);
    }

    #[test]
    fn no_line_begins_with_a_mark_and_no_code_is_broken() {
        let page = format!("{} - c `d  e` f\n", "b".repeat(98));
        assert_eq!(wrapped(&page), format!("{} -\nc `d  e` f\n", "b".repeat(98)));
        let page = format!("{} `d e` f\n", "b".repeat(96));
        assert_eq!(wrapped(&page), format!("{}\n`d e` f\n", "b".repeat(96)));
    }
}
