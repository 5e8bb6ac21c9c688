//! Text that others wrote, made safe for a terminal.

/// Text that others stored, with control characters escaped: a commit's message must not move the
/// cursor in the terminal of the log's reader. Line breaks stay.
pub fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}
