//! Which gateways use the database at this moment, so that none takes from another what that one looks after.
//! Each holds a lock on a file of its own beside the database; the system lets go of it however a process ends.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use tokio::sync::oneshot;

use super::{StoreError, location::Location};

const SUFFIX: &str = ".lock";

#[derive(Debug)]
pub(super) struct Presence {
    pub(super) gateway: String,
    /// Beside the database; nobody else can see one in memory.
    database: Option<PathBuf>,
    lock: Mutex<Option<File>>,
}

/// Another gateway that used the database when it was looked for.
#[derive(Debug)]
pub struct OtherGateway {
    lock: File,
}

impl Presence {
    pub(super) fn begin(location: &Location) -> Result<Self, StoreError> {
        let gateway = uuid::Uuid::new_v4().to_string();
        let Location::File(database) = location else {
            return Ok(Self {
                gateway,
                database: None,
                lock: Mutex::new(None),
            });
        };
        let file = lock_file(database, &gateway);
        let lock = lock_new(&file).map_err(|why| StoreError::Create { file, why })?;
        Ok(Self {
            gateway,
            database: Some(database.clone()),
            lock: Mutex::new(Some(lock)),
        })
    }

    /// Leaves the database to others.
    pub(super) fn end(&self) {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        if lock.is_some() {
            self.forget(&self.gateway);
        }
    }

    /// Whether a gateway is there, be it this one.
    pub(super) fn is_present(&self, gateway: &str) -> bool {
        gateway == self.gateway
            || self.database.as_ref().is_some_and(|database| {
                let file = File::open(lock_file(database, gateway));
                file.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
            })
    }

    /// Removes what a gateway that has left could not remove itself.
    pub(super) fn forget(&self, gateway: &str) {
        if let Some(database) = &self.database {
            // It may be gone already.
            let _ = fs::remove_file(lock_file(database, gateway));
        }
    }

    pub(super) fn others(&self) -> Vec<OtherGateway> {
        let Some(database) = &self.database else {
            return Vec::new();
        };
        let (Some(directory), Some(name)) = (database.parent(), database.file_name().and_then(|name| name.to_str()))
        else {
            return Vec::new();
        };
        let directory = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        };
        let is_other = |file: &Path| {
            let file = file.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            let gateway = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
            let gateway = gateway.and_then(|rest| rest.strip_suffix(SUFFIX));
            gateway.is_some_and(|gateway| gateway != self.gateway)
        };
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        files
            .map(|entry| entry.path())
            .filter(|file| is_other(file))
            .filter_map(|file| File::open(file).ok())
            .map(|lock| OtherGateway { lock })
            .collect()
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.end();
    }
}

impl OtherGateway {
    /// Waits until it has left, however it left.
    pub async fn has_left(self) {
        let (left, told) = oneshot::channel();
        // A thread of its own, because the wait may last as long as the process, which must not wait for it.
        std::thread::spawn(move || {
            let _ = self.lock.lock_shared();
            let _ = left.send(());
        });
        let _ = told.await;
    }
}

fn lock_file(database: &Path, gateway: &str) -> PathBuf {
    let mut file = database.as_os_str().to_owned();
    file.push(format!(".{gateway}{SUFFIX}"));
    file.into()
}

/// A file that is locked before anybody can find it.
fn lock_new(file: &Path) -> io::Result<File> {
    let unfinished = file.with_extension("new");
    let mut options = OpenOptions::new();
    let lock = options.write(true).create_new(true).mode(0o600).open(&unfinished)?;
    lock.lock()?;
    fs::rename(&unfinished, file)?;
    Ok(lock)
}
