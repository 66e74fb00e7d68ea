//! `completions` and `manual`: what packages bring beside the binary, made from the definition of the command line.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use super::CommandError;

/// Prints the completions of a shell.
pub(super) fn completions(mut command: clap::Command, shell: clap_complete::Shell) -> Result<(), CommandError> {
    let name = command.get_name().to_owned();
    // Its generator cannot be told that nobody reads any more.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::Failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a page for the program and one for each of its commands.
pub(super) fn manual(command: clap::Command, dir: &Path) -> Result<(), CommandError> {
    let written = fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    written.map_err(|error| CommandError::Failed(format!("{}: {error}", dir.display())))
}
