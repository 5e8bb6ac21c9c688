//! The functions of a file, and how long they are, by their indentation as rustfmt leaves it.

/// A function with a body.
#[derive(PartialEq, Eq, Debug)]
pub struct Function {
    pub name: String,
    /// The line where it begins, counted from 1.
    pub line: usize,
    /// The number of lines it takes, from its head to its last brace.
    pub lines: usize,
}

/// The functions of a file. A function that a trait only declares is none, and neither is one of
/// one line.
pub fn functions_of(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let lines: Vec<&str> = code.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let inner = line.trim_start();
        let Some((_, rest)) = inner.split_once("fn ").filter(|(before, _)| is_declaration(before))
        else {
            continue;
        };
        if line.ends_with('}') {
            continue;
        }
        let indent = line.len() - inner.len();
        let ends = |line: &&str| {
            let inner = line.trim_start();
            line.len() - inner.len() == indent && (inner.ends_with(';') || inner == "}")
        };
        let end = lines[at..].iter().position(ends);
        if let Some(end) = end.filter(|end| lines[at + end].ends_with('}')) {
            let name = rest.split(['(', '<']).next().unwrap_or_default().to_owned();
            found.push(Function { name, line: at + 1, lines: end + 1 });
        }
    }
    found
}

fn is_declaration(before: &str) -> bool {
    before.split_whitespace().all(|word| {
        word.starts_with("pub")
            || ["const", "async", "unsafe"].contains(&word)
            || word.ends_with(')')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_a_body_are_found() {
        let code = "trait A {\n    fn one(&self);\n    fn two(\n        &self,\n    ) -> u8;\n\n    \
                    fn three(&self) {\n        four()\n    }\n}\n\npub(crate) fn four() {}\n\n\
                    pub fn five(\n    a: u8,\n) -> u8 {\n    a\n}\n";
        let found: Vec<_> =
            functions_of(code).into_iter().map(|it| (it.name, it.line, it.lines)).collect();
        assert_eq!(found, [("three".to_owned(), 7, 3), ("five".to_owned(), 14, 5)]);
    }
}
