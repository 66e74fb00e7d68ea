//! Files and folders that only their owner may read: tokens, documents, records of executions.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// Makes a folder and those above it. One that is there already is closed to others.
pub(super) fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(dir)?;
    close(dir, FOLDER)
}

/// Makes an empty file where there is none, for somebody who would make one that everybody may read.
pub(super) fn private_file(file: &Path) -> io::Result<()> {
    match create(file) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => close(file, FILE),
        Err(error) => Err(error),
    }
}

/// Writes a file whole, unless there is one of that name; returns whether it did.
pub(super) fn write_new(file: &Path, content: &str) -> io::Result<bool> {
    let draft = draft(file, content)?;
    // Unlike renaming, linking fails where another process was faster.
    let linked = fs::hard_link(&draft, file);
    fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a file whole, in the place of the one that may be there.
pub(super) fn replace(file: &Path, content: &str) -> io::Result<()> {
    fs::rename(draft(file, content)?, file)
}

fn draft(file: &Path, content: &str) -> io::Result<std::path::PathBuf> {
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = std::path::PathBuf::from(draft);
    let _ = fs::remove_file(&draft);
    create(&draft)?.write_all(content.as_bytes())?;
    Ok(draft)
}

fn create(file: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE).open(file)
}

fn close(path: &Path, mode: u32) -> io::Result<()> {
    match fs::metadata(path)?.permissions().mode() & OTHERS {
        0 => Ok(()),
        _ => fs::set_permissions(path, Permissions::from_mode(mode)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn others_are_shut_out_of_what_is_new_and_of_what_was_there() {
        let dir = tempfile::tempdir().expect("a folder");
        let (old, new) = (dir.path().join("old"), dir.path().join("new/inner"));
        fs::create_dir(&old).expect("a folder");
        fs::set_permissions(&old, Permissions::from_mode(0o755)).expect("open to all");
        for folder in [&old, &new] {
            private_dir(folder).expect("a folder");
            assert_eq!(mode(folder), 0o700);
        }
        let file = old.join("file");
        fs::write(&file, "x").expect("a file");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("open to all");
        private_file(&file).expect("a file");
        assert_eq!(
            (mode(&file), fs::read_to_string(&file).expect("text")),
            (0o600, "x".to_owned())
        );
    }

    #[test]
    fn the_first_of_two_writers_wins_unless_told_otherwise() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("token");
        let content = || fs::read_to_string(&file).expect("text");
        assert!(write_new(&file, "one").expect("written"));
        assert!(!write_new(&file, "two").expect("not written"));
        assert_eq!((content(), mode(&file)), ("one".to_owned(), 0o600));
        replace(&file, "three").expect("written");
        assert_eq!((content(), mode(&file)), ("three".to_owned(), 0o600));
        assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 1);
    }
}
