//! `frond completions`: what a shell needs to complete commands and options.

use clap_complete::Shell;

use crate::failure::Failure;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond completions bash > ~/.local/share/bash-completion/completions/frond
  frond completions zsh > ~/.zfunc/_frond         with ~/.zfunc in fpath, before compinit
  frond completions fish > ~/.config/fish/completions/frond.fish";

/// Print a script with which a shell completes commands and options
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
        // In memory first: the generator can't be told of a reader that is gone.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        std::io::Write::write_all(terminal, &script)?;
        Ok(())
    }
}
