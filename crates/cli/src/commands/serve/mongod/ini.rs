//! Configuration files as mongod had them before YAML: lines of `option = value`, which
//! mongo-orchestration and older scripts still write.

use std::ffi::OsString;

/// The words of a command line that say what such a file says; `None` if it isn't such a file.
pub fn words(text: &str) -> Option<Vec<OsString>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut words: Vec<OsString> = Vec::new();
    for line in lines {
        let (name, value) = line.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        // A file names no other.
        if name.is_empty() || !name.chars().all(is_name) || name == "config" {
            return None;
        }
        match value {
            "true" => words.push(format!("--{name}").into()),
            "false" => {}
            // `setParameter = NAME=VALUE` has a second `=`.
            value => words.extend([format!("--{name}").into(), value.into()]),
        }
    }
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_distinguished_from_yaml() {
        let text = "# made by a script\nport = 4000\nauth=true\nipv6 = false\n\
                    setParameter = enableTestCommands=1\n";
        let found = words(text).expect("options");
        let found: Vec<_> = found.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(found, ["--port", "4000", "--auth", "--setParameter", "enableTestCommands=1"]);
        for other in ["", "net:\n  port: 4000\n", "storage:\n  dbPath: a=b\n", "port 4000"] {
            assert_eq!(words(other), None, "{other}");
        }
    }
}
