//! The repository of interceptors.

use jiff::Timestamp;

use super::*;
use crate::store::{InterceptorStore, NewInterceptor, StoreError, StoredInterceptor, StoredInterceptors};

on_both!(
    what_was_added_is_there_after_a_reopening_and_in_order,
    an_id_is_given_once_whoever_asks,
    only_what_is_there_and_of_the_tenant_is_removed,
    many_processes_may_make_it_at_once,
);

fn new(tenant: &str, id: &str) -> NewInterceptor {
    NewInterceptor {
        tenant: tenant.to_owned(),
        id: id.to_owned(),
        creator: "admin".to_owned(),
        created: Timestamp::from_microsecond(1_700_000_000_123_456).expect("in range"),
        definition: format!(r#"{{"id":"{id}"}}"#),
    }
}

fn ids(of: &[StoredInterceptor]) -> Vec<&str> {
    of.iter().map(|one| one.id.as_str()).collect()
}

async fn what_was_added_is_there_after_a_reopening_and_in_order(place: TestPlace) {
    let first = place.open().await;
    let empty = first.load().await.expect("it loads");
    assert_eq!(empty, StoredInterceptors { revision: 0, interceptors: Vec::new() });
    let added = first.add(new("", "b")).await.expect("it is added");
    assert_eq!((added.creator.as_str(), added.created), ("admin", new("", "b").created));
    first.add(new("", "a")).await.expect("it is added");
    first.add(new("acme", "a")).await.expect("another tenant has ids of its own");
    drop(first);
    let again = place.open().await;
    let all = again.load().await.expect("it loads");
    assert_eq!(ids(&all.interceptors), ["b", "a", "a"]);
    assert_eq!(all.interceptors[0], added);
    assert_eq!(all.revision, 3);
}

async fn an_id_is_given_once_whoever_asks(place: TestPlace) {
    let (one, other) = (place.open().await, place.open().await);
    let (a, b) = tokio::join!(one.add(new("", "x")), other.add(new("", "x")));
    let outcomes = [a.is_ok(), b.is_ok()];
    assert!(outcomes[0] != outcomes[1], "one of both: {a:?} {b:?}");
    let refused = a.err().or(b.err()).expect("one was refused");
    assert!(matches!(refused, StoreError::AlreadyExists { ref id } if id == "x"), "{refused}");
    assert_eq!(other.revision().await.expect("a number"), 1, "a refused one is no change");
}

async fn only_what_is_there_and_of_the_tenant_is_removed(place: TestPlace) {
    let store = place.open().await;
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

async fn many_processes_may_make_it_at_once(place: TestPlace) {
    let (a, b, c) = tokio::join!(place.open(), place.open(), place.open());
    for (store, id) in [(&a, "a"), (&b, "b"), (&c, "c")] {
        store.add(new("", id)).await.expect("it is added");
    }
    assert_eq!(a.load().await.expect("it loads").interceptors.len(), 3);
}
