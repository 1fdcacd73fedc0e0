use super::super::StoredInterceptor;
use super::*;

fn new(tenant: &str, id: &str) -> NewInterceptor {
    NewInterceptor {
        tenant: tenant.to_owned(),
        id: id.to_owned(),
        creator: "admin".to_owned(),
        created: Timestamp::from_microsecond(1_700_000_000_123_456).expect("in range"),
        definition: format!(r#"{{"id":"{id}"}}"#),
    }
}

async fn store(path: &Path) -> SqliteStore {
    SqliteStore::open(&Config::default(), path).await.expect("it opens")
}

fn ids(of: &[StoredInterceptor]) -> Vec<&str> {
    of.iter().map(|one| one.id.as_str()).collect()
}

#[tokio::test]
async fn what_was_added_is_there_after_a_reopening_and_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("below/portcullis.db");
    let first = store(&path).await;
    let empty = first.load().await.expect("it loads");
    assert_eq!(empty, StoredInterceptors { revision: 0, interceptors: Vec::new() });
    let added = first.add(new("", "b")).await.expect("it is added");
    assert_eq!((added.creator.as_str(), added.created), ("admin", new("", "b").created));
    first.add(new("", "a")).await.expect("it is added");
    first.add(new("acme", "a")).await.expect("another tenant has ids of its own");
    drop(first);
    let again = store(&path).await;
    let all = again.load().await.expect("it loads");
    assert_eq!(ids(&all.interceptors), ["b", "a", "a"]);
    assert_eq!(all.interceptors[0], added);
    assert_eq!(all.revision, 3);
}

#[tokio::test]
async fn an_id_is_given_once_whoever_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("portcullis.db");
    let (one, other) = (store(&path).await, store(&path).await);
    let (a, b) = tokio::join!(one.add(new("", "x")), other.add(new("", "x")));
    let outcomes = [a.is_ok(), b.is_ok()];
    assert!(outcomes[0] != outcomes[1], "one of both: {a:?} {b:?}");
    let refused = a.err().or(b.err()).expect("one was refused");
    assert!(matches!(refused, StoreError::AlreadyExists { ref id } if id == "x"), "{refused}");
    assert_eq!(other.revision().await.expect("a number"), 1, "a refused one is no change");
}

#[tokio::test]
async fn only_what_is_there_and_of_the_tenant_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder.path().join("portcullis.db")).await;
    for (tenant, id) in [("", "a"), ("", "b"), ("acme", "a")] {
        store.add(new(tenant, id)).await.expect("it is added");
    }
    let before = store.revision().await.expect("a number");
    let none = store.remove("other".into(), vec!["a".into()]).await.expect("nothing to do");
    assert!(none.is_empty());
    assert_eq!(store.revision().await.expect("a number"), before);
    let ids_wanted = vec!["b".into(), "a".into(), "gone".into()];
    let removed = store.remove(String::new(), ids_wanted).await.expect("removed");
    assert_eq!(ids(&removed), ["a", "b"], "in order of registration");
    let left = store.load().await.expect("it loads");
    assert_eq!(left.interceptors.len(), 1);
    assert_eq!(left.interceptors[0].tenant, "acme");
    assert!(left.revision > before);
    let later = store.add(new("", "a")).await.expect("the id is free again");
    assert!(later.sequence > 3, "a sequence number is never given twice");
}

#[tokio::test]
async fn many_processes_may_make_it_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("portcullis.db");
    let (a, b, c) = tokio::join!(store(&path), store(&path), store(&path));
    for (store, id) in [(&a, "a"), (&b, "b"), (&c, "c")] {
        store.add(new("", id)).await.expect("it is added");
    }
    assert_eq!(a.load().await.expect("it loads").interceptors.len(), 3);
}

#[tokio::test]
async fn what_cannot_be_used_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config::default();
    let garbage = folder.path().join("garbage.db");
    std::fs::write(&garbage, "this is a letter, not a database. ".repeat(100)).expect("written");
    let below_a_file = garbage.join("portcullis.db");
    let newer = folder.path().join("newer.db");
    {
        let store = store(&newer).await;
        let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                     VALUES (9999, 'later', 1, x'00', 0)";
        sqlx::query(later).execute(&store.pool).await.expect("it is written");
    }
    let damaged = SqliteStore::open(&config, &garbage).await.err().expect("refused");
    assert!(matches!(damaged, StoreError::Damaged { .. }), "{damaged}");
    let is_folder = SqliteStore::open(&config, folder.path()).await.err().expect("refused");
    assert!(matches!(is_folder, StoreError::Open { .. }), "{is_folder}");
    let no_folder = SqliteStore::open(&config, &below_a_file).await.err().expect("refused");
    assert!(matches!(no_folder, StoreError::Open { .. }), "{no_folder}");
    let newer = SqliteStore::open(&config, &newer).await.err().expect("refused");
    assert!(matches!(newer, StoreError::Schema { .. }), "{newer}");
    for error in [damaged, is_folder, no_folder, newer] {
        let text = error.to_string();
        assert!(text.contains(folder.path().to_str().expect("UTF-8")) && text.contains("; "), "{text}");
    }
}

#[tokio::test]
async fn a_database_that_can_only_be_read_is_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("portcullis.db");
    drop(store(&path).await);
    let options = SqliteConnectOptions::new().filename(&path).pragma("query_only", "ON");
    let error = SqliteStore::try_open(&options, &path, Duration::from_secs(1)).await.err().expect("refused");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[tokio::test]
async fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("portcullis.db");
    let store = store(&path).await;
    store.add(new("", "a")).await.expect("it is added");
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
    }
}
