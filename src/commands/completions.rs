//! `completions`.

use clap_complete::Shell;

use crate::exit::Exit;
use crate::output::say;

/// Print completions for a shell
///
/// They name every command and option.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dsh-conform completions bash > \\
      ~/.local/share/bash-completion/completions/dsh-conform
  dsh-conform completions zsh  > ~/.zfunc/_dsh-conform
  dsh-conform completions fish > ~/.config/fish/completions/dsh-conform.fish")]
pub(crate) struct Args {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::cli::definition(),
        "dsh-conform",
        &mut script,
    );
    match say(&String::from_utf8_lossy(&script)) {
        Ok(()) => Exit::Fine,
        Err(_) => Exit::NotCarriedOut,
    }
}
