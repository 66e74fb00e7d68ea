//! A statement with its arguments, before it is known which database runs it.

use std::borrow::Cow;

use sqlx::{AssertSqlSafe, Postgres, Sqlite, postgres::PgArguments, query::Query, sqlite::SqliteArguments};

/// SQL that was written here, and what callers gave, kept apart.
#[derive(Debug, Clone)]
pub(crate) struct Statement<'a> {
    sql: Cow<'static, str>,
    arguments: Vec<Argument<'a>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Argument<'a> {
    Bool(bool),
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Bytes(&'a [u8]),
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self {
            sql: Cow::Borrowed(sql),
            arguments: Vec::new(),
        }
    }

    /// Gives the next `$n` of the SQL its value.
    pub(crate) fn bind(mut self, argument: impl Into<Argument<'a>>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Continues the SQL.
    pub(crate) fn push(&mut self, sql: &'static str) -> &mut Self {
        self.sql.to_mut().push_str(sql);
        self
    }

    /// Continues the SQL with a value.
    pub(crate) fn push_bind(&mut self, argument: impl Into<Argument<'a>>) -> &mut Self {
        self.arguments.push(argument.into());
        let placeholder = format!("${}", self.arguments.len());
        self.sql.to_mut().push_str(&placeholder);
        self
    }

    /// Continues the SQL with values between commas.
    pub(crate) fn push_list<T: Into<Argument<'a>>>(&mut self, arguments: impl IntoIterator<Item = T>) -> &mut Self {
        for (index, argument) in arguments.into_iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            self.push_bind(argument);
        }
        self
    }

    pub(super) fn sqlite(self) -> Query<'static, Sqlite, SqliteArguments> {
        let mut query = sqlx::query(AssertSqlSafe(self.sql));
        for argument in self.arguments {
            query = match argument {
                Argument::Bool(value) => query.bind(value),
                Argument::Integer(value) => query.bind(value),
                Argument::Text(value) => query.bind(value.map(Cow::into_owned)),
                Argument::Bytes(value) => query.bind(value.to_owned()),
            };
        }
        query
    }

    pub(super) fn postgres(self) -> Query<'static, Postgres, PgArguments> {
        let mut query = sqlx::query(AssertSqlSafe(self.sql));
        for argument in self.arguments {
            query = match argument {
                Argument::Bool(value) => query.bind(value),
                Argument::Integer(value) => query.bind(value),
                Argument::Text(value) => query.bind(value.map(without_nul)),
                Argument::Bytes(value) => query.bind(value.to_owned()),
            };
        }
        query
    }
}

/// PostgreSQL has no NUL in its texts. A record with one must not keep all others from being written.
fn without_nul(text: Cow<'_, str>) -> String {
    match text.contains('\0') {
        true => text.replace('\0', "\u{FFFD}"),
        false => text.into_owned(),
    }
}

impl From<bool> for Argument<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Argument<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for Argument<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl<'a> From<&'a str> for Argument<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(value)))
    }
}

impl<'a> From<&'a String> for Argument<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(Some(Cow::Borrowed(value)))
    }
}

impl From<String> for Argument<'_> {
    fn from(value: String) -> Self {
        Self::Text(Some(Cow::Owned(value)))
    }
}

impl From<Option<String>> for Argument<'_> {
    fn from(value: Option<String>) -> Self {
        Self::Text(value.map(Cow::Owned))
    }
}

impl<'a> From<Option<&'a str>> for Argument<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Self::Text(value.map(Cow::Borrowed))
    }
}

impl<'a> From<&'a Option<String>> for Argument<'a> {
    fn from(value: &'a Option<String>) -> Self {
        Self::Text(value.as_deref().map(Cow::Borrowed))
    }
}

impl<'a> From<&'a [u8]> for Argument<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a> From<&'a Vec<u8>> for Argument<'a> {
    fn from(value: &'a Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}
