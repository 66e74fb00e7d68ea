//! Opening a database: its URL, its schema.

use super::*;

on_both_engines! {
    a_database_of_a_newer_version_is_refused_and_left_alone,
    two_that_start_at_once_make_one_schema,
}

async fn a_database_of_a_newer_version_is_refused_and_left_alone(scene: Scene) {
    scene.open().await.close().await;
    let (success, checksum) = match scene {
        Scene::Sqlite(_) => ("1", "x'00'"),
        Scene::Postgres(_) => ("true", "''"),
    };
    scene
        .sql(&format!(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
             VALUES (9999, 'x', {success}, {checksum}, 0)"
        ))
        .await;
    let error = Store::open(&scene.url(), StoreLimits::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains(" was made by a newer version"), "{error}");
    assert!(error.contains("schema 9999, known up to "), "{error}");
    assert!(Store::migrate(&scene.url()).await.is_err());
}

async fn two_that_start_at_once_make_one_schema(scene: Scene) {
    let opened = futures::future::join_all((0..8).map(|_| {
        let url = scene.url();
        tokio::spawn(async move { Store::migrate(&url).await.unwrap().applied.len() })
    }));
    let applied: Vec<usize> = opened.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(applied.iter().filter(|count| **count > 0).count(), 1, "{applied:?}");
}

#[tokio::test]
async fn what_is_no_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.db");
    fs::write(&file, "a shopping list, of some length").unwrap();
    let error = Store::open(&file_url(&file), StoreLimits::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("gateway.db cannot be opened as a database"), "{error}");
    let nowhere = Store::open("sqlite:///no/such/folder/x.db", StoreLimits::default())
        .await
        .unwrap_err();
    assert!(matches!(nowhere, StoreError::Create { .. }), "{nowhere}");
}

#[test]
fn urls_are_read() {
    let file = |url: &str| match Location::parse(url) {
        Ok(Location::File(file)) => file,
        _ => panic!("{url} is no file"),
    };
    assert!(matches!(Location::parse("sqlite::memory:"), Ok(Location::Memory)));
    assert_eq!(file("sqlite://gateway.db"), Path::new("gateway.db"));
    assert_eq!(file("sqlite:///var/lib/x.db"), Path::new("/var/lib/x.db"));
    let odd = Path::new("/a b/50%?/ñ#.db");
    assert_eq!(file(&file_url(odd)), odd);
    let refusal = |url: &str| Location::parse(url).err().unwrap();
    assert!(matches!(refusal("mysql://h/d"), StoreError::Unsupported));
    assert!(matches!(refusal("sqlite://"), StoreError::NoFile));
    assert!(matches!(refusal("sqlite://x.db?mode=ro"), StoreError::Parameters));
}

#[test]
fn the_password_of_a_database_is_never_shown() {
    let location = Location::parse("postgresql://ana:hunter2@db.example:5433/notes?sslmode=require").unwrap();
    let shown = location.to_string();
    assert_eq!(shown, "the PostgreSQL database notes at db.example:5433");
    for url in [
        "postgres://ana:hunter2@db:notaport/x",
        "postgres://ana:hunter2@db/x?sslmode=hunter3",
        "postgres://ana:hunter2@[db/x",
    ] {
        let error = Location::parse(url).err().unwrap().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        assert!(error.contains("expected \"postgres://"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let url = "postgres://ana:hunter2@127.0.0.1:1/notes";
    for error in [
        Store::open(url, StoreLimits::default()).await.unwrap_err(),
        Store::migrate(url).await.unwrap_err(),
    ] {
        let error = error.to_string();
        let expected = "cannot connect to the PostgreSQL database notes at 127.0.0.1:1: ";
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("refused") && !error.contains("hunter2"), "{error}");
    }
}
