//! `frond completions`: what a shell needs to complete commands, options and names.
//!
//! Commands and options stand in the script, which the parser of arguments makes. Names of
//! databases, branches, tags and collections are asked of `frond complete` when they are needed: in
//! bash, zsh and fish.

use clap_complete::Shell;

use crate::failure::Failure;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond completions bash > ~/.local/share/bash-completion/completions/frond
  frond completions zsh > ~/.zfunc/_frond         with ~/.zfunc in fpath, before compinit
  frond completions fish > ~/.config/fish/completions/frond.fish";

/// Readline replaces only what follows the last `@` of a word, if that ends words.
const BASH: &str = r#"_frond_names() {
    local line="${COMP_LINE:0:COMP_POINT}" word before="" name
    local -a words names
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word="${words[${#words[@]}-1]}"
    [[ $word == -* || ${#words[@]} -lt 3 ]] && return
    [[ $COMP_WORDBREAKS == *@* ]] && before="${word%"${word##*@}"}"
    while IFS= read -r name; do
        names+=("${name#"$before"}")
    done < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
    [[ ${#names[@]} -gt 0 ]] && COMPREPLY=("${names[@]}")
    return 0
}

_frond_with_names() {
    _frond "$@"
    _frond_names
}

complete -F _frond_with_names -o bashdefault -o default frond
"#;

const ZSH: &str = r#"_frond_names() {
    local -a said found
    said=(${(Q)${(z)LBUFFER}})
    [[ $LBUFFER == *[[:space:]] ]] && said+=("")
    found=(${(f)"$($said[1] complete -- "${(@)said[2,-1]}" 2>/dev/null)"})
    if (( $#found )); then
        compadd -- $found
    else
        _default
    fi
}

"#;
/// What the generated script does for a value of which it knows nothing, and where it begins to
/// act.
const ZSH_ACTION: &str = ":_default'";
const ZSH_START: &str = "if [ \"$funcstack[1]\" = \"_frond\" ]; then";

const FISH: &str = r#"function __frond_names
    frond complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c frond -n "not string match -q -- '-*' (commandline -ct)" -a "(__frond_names)"
"#;
/// How the generated script ends a line of an option with a value of which it knows nothing.
const FISH_VALUE: &str = " -r\n";

fn with_names_in_fish(script: &str) -> String {
    let script = script.replace(FISH_VALUE, " -r -a \"(__frond_names)\"\n");
    format!("{script}\n{FISH}")
}

fn with_names_in_zsh(script: &str) -> String {
    let script = script.replace(ZSH_ACTION, ":_frond_names'");
    script.replacen(ZSH_START, &format!("{ZSH}{ZSH_START}"), 1)
}

/// Print a script with which a shell completes commands, options and names
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    /// Prints the script for `command`, the whole command line.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn run(&self, mut command: clap::Command, terminal: &mut Terminal) -> Result<(), Failure> {
        let name = command.get_name().to_owned();
        // In memory first: the generator doesn't handle a reader that is gone.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        let script = String::from_utf8_lossy(&script);
        let script = match self.shell {
            Shell::Bash => format!("{script}\n{BASH}"),
            Shell::Zsh => with_names_in_zsh(&script),
            Shell::Fish => with_names_in_fish(&script),
            _ => script.into_owned(),
        };
        Ok(std::io::Write::write_all(terminal, script.as_bytes())?)
    }
}
