//! Goal: output comes in the forms that other programs read: JSON on one line, manual pages,
//! completions.

use crate::{Directory, command, frond, frond_with, run_words};

#[test]
fn answers_are_printed_as_json() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\":1,\"price\":30}")
        .ok();
    for (line, expected) in [
        ("branch shop sale --json", "{\"branch\":\"sale\",\"commitId\":\""),
        ("branch shop --json", "{\"branches\":[{\"branch\":\"main\""),
        ("tag shop v1 --json", "{\"tag\":\"v1\""),
        ("tag shop --json", "{\"tags\":[{\"tag\":\"v1\""),
        ("policy shop --json", "{"),
        ("commit shop -m empty --allow-empty --json", "{\"branch\":\"main\""),
        ("revert shop HEAD~1 --json", "{\"result\":\"merged\""),
        ("undo shop --json", "{"),
        ("restore shop items --json", "{\"result\":\"unchanged\""),
        ("reset shop --hard --json", "{\"commitId\":\""),
        ("merge shop sale --json", "{\"result\":\"upToDate\""),
        ("rebase shop@sale main --json", "{"),
        ("gc --json", "{\"bytesBefore\":"),
        ("erase shop items --id 1 --dry-run --json", "{"),
        ("erase shop --commits --json", "{\"commits\":["),
        ("remote shop add origin plain --json", "{\"name\":\"origin\",\"place\":\""),
        ("remote shop --json", "{\"name\":\"origin\""),
        ("push shop --json", "{\"branch\":\"main\",\"to\":\""),
        ("fetch shop --json", "{\"branches\":["),
        ("pull shop --json", "{\"branches\":["),
        ("clone plain copy --json", "{\"branches\":[{\"branch\":\"origin/main\""),
        ("backup backups --name one --json", "{\"name\":\"one\",\"time\":"),
        ("backup backups --list --json", "{\"name\":\"one\""),
        ("import -d shop -c items --json", "{\"database\":\"shop\",\"collection\":\"items\""),
        ("doctor --json", "{\"name\":\"holds\""),
        ("fsck --json", "{\"whole\":true,\"chunks\":"),
        ("gc --place plain --json", "{\"bytesBefore\":"),
        ("backup backups --verify --json", "{\"whole\":true,\"chunks\":"),
        ("restore --backup backups --data whole --json", "{\"name\":\"one\",\"time\":"),
        (
            "restore --backup backups --database shop --data part --json",
            "{\"whole\":true,\"chunks\":",
        ),
        ("repair --from backups --json", "{\"whole\":true,\"chunks\":"),
        ("salvage --to saved --json", "{\"whole\":true,\"chunks\":"),
        ("backup backups --remove one --json", "{\"removed\":\"one\"}"),
    ] {
        let ran = frond_with(&directory, line, "{\"_id\":1,\"price\":30}\n");
        // One document isn't imported: it is there.
        let code = i32::from(line.starts_with("import"));
        assert_eq!(ran.code, code, "{line}: {ran:?}");
        assert!(ran.out.starts_with(expected), "{line}: {ran:?}");
        for output in ran.out.lines() {
            assert!(output.starts_with('{') && output.ends_with('}'), "{line}: {output}");
        }
    }
    frond(&directory, "erase shop items --id 1 --json").fails(2);
}

/// A program that reads JSON reads errors, too: on the last line of standard error.
#[test]
fn errors_are_printed_as_json() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\":1}").ok();
    for (line, code, expected) in [
        ("log nope --json", 1, "\"code\":26,\"codeName\":\"NamespaceNotFound\","),
        ("log --json shop nope", 1, "no branch or revision nope in shop"),
        ("ls shop --json --data gone", 1, "{\"errmsg\":\"there is no data directory gone: "),
        (
            "diff shop --json --nope",
            2,
            "{\"errmsg\":\"unexpected argument '--nope' found\",\"exitCode\":2}",
        ),
        ("log shop --since never --json", 2, "\"exitCode\":2}"),
        ("commit shop --json", 2, "-m"),
        ("nope --json", 2, "{\"errmsg\":\"unrecognized subcommand 'nope'\",\"exitCode\":2}"),
    ] {
        let ran = frond(&directory, line);
        assert_eq!(ran.code, code, "{line}: {ran:?}");
        let last = ran.err.lines().last().unwrap_or_default();
        assert!(last.contains(expected) && last.starts_with("{\"errmsg\":\""), "{line}: {ran:?}");
        assert!(last.ends_with(&format!("\"exitCode\":{code}}}")), "{line}: {ran:?}");
        assert_eq!(ran.out, "", "{line}");
    }
    // What stands behind -- is an option of another program.
    let ran = frond(&directory, "bisect nope HEAD -- test --json");
    assert!(ran.err.starts_with("frond: "), "{ran:?}");
}

#[test]
fn conflicts_are_printed_as_json_too() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\":1,\"price\":30}")
        .ok();
    frond(&directory, "branch shop sale").ok();
    for (branch, price) in [("main", 40), ("sale", 15)] {
        let line = format!("import -d shop@{branch} -c items --mode upsert --commit {branch}");
        frond_with(&directory, &line, &format!("{{\"_id\":1,\"price\":{price}}}")).ok();
    }
    let ran = frond(&directory, "merge shop sale --json");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("\"result\":\"conflicts\""), "{ran:?}");
    let output = frond(&directory, "conflicts shop --json").ok();
    assert!(output.starts_with("{\"conflicts\":[{\"id\":\""), "{output}");
    assert!(output.ends_with("\"theirs\":{\"_id\":1,\"price\":15}}]}\n"), "{output}");
    let none = frond(&directory, "conflicts shop --collection others --json").ok();
    assert_eq!(none, "{\"conflicts\":[]}\n");
    let resolved = frond(&directory, "resolve shop --all --ours --json").ok();
    assert!(resolved.contains("\"remaining\":0"), "{resolved}");
    assert_eq!(frond(&directory, "conflicts shop").ok(), "no conflicts\n");
    frond(&directory, "merge shop --continue --json").ok();
}

/// More than one answer may hold: 54 MB of sides.
#[test]
fn conflicts_of_any_size_are_printed() {
    let directory = Directory::new();
    let documents = |side: char| {
        let text = side.to_string().repeat(4_500_000);
        let line = |id: i32| format!("{{\"_id\":{id},\"text\":\"{text}\"}}\n");
        (0..4).map(line).collect::<String>()
    };
    frond_with(&directory, "import -d shop -c items --commit first", &documents('a')).ok();
    frond(&directory, "branch shop sale").ok();
    for (branch, side) in [("main", 'b'), ("sale", 'c')] {
        let line = format!("import -d shop@{branch} -c items --mode upsert --commit {branch}");
        frond_with(&directory, &line, &documents(side)).ok();
    }
    assert_eq!(frond(&directory, "merge shop sale").code, 1);
    let output = frond(&directory, "conflicts shop --json").ok();
    assert!(output.len() > 54_000_000 && output.ends_with("]}\n"), "{} bytes", output.len());
    let output = frond(&directory, "conflicts shop").ok();
    assert_eq!(output.lines().filter(|line| line.contains("theirs")).count(), 5, "{output}");
}

/// A page for each command, with its examples as they stand; no line that roff would take.
#[test]
fn manual_pages() {
    let directory = Directory::new();
    frond(&directory, "man pages").ok();
    let page =
        |name: &str| std::fs::read_to_string(directory.path().join("pages").join(name)).unwrap();
    let merge = page("frond-merge.1");
    assert!(merge.contains(".SH EXAMPLES\n.nf\nfrond merge shop sale"), "{merge}");
    let synopsis = ".SH SYNOPSIS\n.nf\nfrond merge [OPTIONS] <DATABASE> <VERSION>\nfrond merge ";
    assert!(merge.contains(synopsis), "{merge}");
    assert!(page("frond.1").contains("frond\\-merge(1)"));
    assert!(page("frond-remote-add.1").contains("PLACE"));
    let help = frond(&directory, "help").ok();
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let commands = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut count = 0;
    for command in commands.filter(|command| !command.is_empty() && *command != "help") {
        assert!(page(&format!("frond-{command}.1")).contains(".SH SYNOPSIS"), "{command}");
        count += 1;
    }
    assert!(count > 40, "{count} commands");
}

#[test]
fn completions() {
    let directory = Directory::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = frond(&directory, &format!("completions {shell}")).ok();
        assert!(script.contains("cherry-pick") && script.contains("on-conflict"), "{shell}");
    }
    frond(&directory, "completions cmd").fails(2);
    // The names come by what the generated script does where it knows nothing.
    let zsh = frond(&directory, "completions zsh").ok();
    assert!(
        zsh.contains(":database -- Database, or DATABASE@VERSION to begin there:_frond_names'")
    );
    assert!(zsh.contains("\n_frond_names() {\n") && !zsh.contains(":_default'"));
    assert!(frond(&directory, "completions fish").ok().contains("frond complete --"));
}

/// Method: bash is asked as readline asks it.
#[test]
fn names_are_completed() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\":1}").ok();
    frond(&directory, "branch shop sale").ok();
    frond(&directory, "tag shop v1").ok();
    let script = frond(&directory, "completions bash").ok();
    let script = directory.file("frond.bash", &script);
    let binaries = std::path::Path::new(env!("CARGO_BIN_EXE_frond")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap_or_default());
    for (line, expected) in [
        ("frond log sh", "shop"),
        ("frond log shop@", "main sale v1"),
        ("frond log shop@sa", "sale"),
        ("frond log shop ", "main sale v1"),
        ("frond log shop main..s", "main..sale"),
        ("frond branch shop --delete ", "main sale"),
        ("frond tag shop -d ", "v1"),
        ("frond export -d shop -c ", "items"),
        ("frond log shop -- ", "items"),
        ("frond log nothing ", ""),
        ("frond log shop --data gone ", ""),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let script = format!(
            "source {script}; COMP_LINE='{line}'; COMP_POINT={}; COMP_WORDS=({}); COMP_CWORD={}; \
             COMPREPLY=(); _frond_names; echo \"${{COMPREPLY[*]}}\"",
            line.len(),
            words.iter().map(|word| format!("'{word}' ")).collect::<String>(),
            words.len() - 1,
        );
        let ran = std::process::Command::new("bash")
            .args(["-c", &script])
            .env("PATH", &path)
            .current_dir(directory.path())
            .output()
            .unwrap();
        let printed = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(
            printed.trim_end(),
            expected,
            "{line}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    assert!(!directory.path().join("gone").exists());
}

#[test]
fn usage_names_the_database_first() {
    let directory = Directory::new();
    for command in ["merge", "rebase", "resolve", "bisect", "apply", "erase"] {
        let help = frond(&directory, &format!("{command} --help")).ok();
        let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap();
        assert!(usage.contains(&format!("frond {command} [OPTIONS] <DATABASE>")), "{usage}");
    }
}

#[test]
fn a_port_of_http_is_distinguished_from_that_of_drivers() {
    let directory = Directory::new();
    let server = crate::remotes::Server::start(
        &directory,
        "serve --listen 127.0.0.1:0 --remote-listen 127.0.0.1:0",
    );
    let words = ["ls".to_owned(), "--uri".to_owned(), server.address.clone()];
    let error = run_words(&directory, &words, "").fails(1);
    assert!(error.contains("an HTTP server answers there"), "{error}");
}

#[test]
fn names_steer_no_terminal() {
    let directory = Directory::new();
    let words = ["import", "-d", "shop", "-c", "red \u{1b}[31m"].map(str::to_owned);
    let ran = run_words(&directory, &words, "{\"_id\": 1}");
    assert!(ran.out.contains("shop.red \\u{1b}[31m"), "{ran:?}");
}

#[test]
fn a_command_ends_as_usual_if_its_notices_are_not_read() {
    let directory = Directory::new();
    directory.file("things.jsonl", "{\"_id\": 1}\n{\"_id\": 2}\n");
    frond(&directory, "import things.jsonl -d shop -c things").ok();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut export = command(&directory, "export -d shop -c things");
    let ended = export.stderr(writer).output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8(ended.stdout).unwrap().lines().count(), 2);
}
