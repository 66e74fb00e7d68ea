//! Tests that run on both engines of the store.

/// Makes of each function, which takes settings of the store, a test on SQLite and one on PostgreSQL.
macro_rules! on_both_engines {
    ($($test:ident),* $(,)?) => {
        mod on_sqlite {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test("").await;
                }
            )*
        }

        mod on_postgres {
            $(
                #[tokio::test]
                async fn $test() {
                    let database = test_postgres::TestDatabase::create();
                    super::$test(&format!("[store]\nurl = \"{}\"", database.url())).await;
                }
            )*
        }
    };
}

pub(crate) use on_both_engines;
