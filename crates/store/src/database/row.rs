//! A row of an answer, whichever database gave it.

use sqlx::{Decode, Postgres, Row as _, Sqlite, Type, postgres::PgRow, sqlite::SqliteRow};

pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// A value that both databases can give.
pub(crate) trait Column:
    Type<Sqlite> + for<'r> Decode<'r, Sqlite> + Type<Postgres> + for<'r> Decode<'r, Postgres>
{
}

impl<T> Column for T where T: Type<Sqlite> + for<'r> Decode<'r, Sqlite> + Type<Postgres> + for<'r> Decode<'r, Postgres> {}

impl Row {
    /// The value in a column.
    pub(crate) fn get<T: Column>(&self, column: &str) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    /// The value in the only or first column.
    pub(crate) fn first<T: Column>(&self) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(0),
            Self::Postgres(row) => row.try_get(0),
        }
    }
}

/// The values of all rows that can be read. One that cannot, as after damage to the file, hides nothing but itself.
pub(crate) fn readable<T>(
    rows: Vec<Row>,
    table: &'static str,
    read: impl Fn(&Row) -> Result<T, sqlx::Error>,
) -> Vec<T> {
    let value = |row: &Row| match read(row) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!(table, %error, "a row of the store cannot be read and is skipped");
            None
        }
    };
    rows.iter().filter_map(value).collect()
}
