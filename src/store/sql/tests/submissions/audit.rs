//! Administrative events and the chain over them.

use super::*;
use crate::store::sql::Statement;
use crate::store::{AuditFilter, AuditQuery, AuditStore, ChainReport, StoreError};

on_both!(
    each_filter_passes_the_events_it_says_page_by_page,
    many_writers_make_one_chain,
    what_was_changed_in_the_database_is_found,
    an_event_is_kept_once,
);

fn plain(id: &str, seconds: i64) -> NewAuditEvent {
    NewAuditEvent {
        id: id.to_owned(),
        time: at(seconds),
        action: "store.submission.approved".to_owned(),
        actor: "system".to_owned(),
        resource: "submission:s1".to_owned(),
        detail_json: r#"{"a":"☃"}"#.to_owned(),
        ..NewAuditEvent::default()
    }
}

fn whole(length: u64) -> impl Fn(&ChainReport) -> bool {
    move |report| report.broken_at.is_none() && report.length == length && report.last_hash.len() == 64
}

async fn each_filter_passes_the_events_it_says_page_by_page(place: TestPlace) {
    let store = place.open().await;
    let of =
        |id: &str, seconds, action: &str| NewAuditEvent { action: action.to_owned(), ..plain(id, seconds) };
    let mut last = NewAuditEvent { tenant: "acme".to_owned(), ..plain("a6", 6) };
    last.reason = "because".to_owned();
    last.decision_id = "d".to_owned();
    last.policy_revision = "p".to_owned();
    last.request_id = "r".to_owned();
    let all = [
        of("a1", 1, "store.submission.accepted"),
        NewAuditEvent { actor: "ada".to_owned(), ..of("a2", 2, "store.submission.approved") },
        of("a3", 2, "store_x"),
        NewAuditEvent { resource: "interceptor:i".to_owned(), ..of("a4", 3, "interceptor.added") },
        NewAuditEvent { decision_id: "d9".to_owned(), ..of("a5", 4, "store.entity.archived") },
        last.clone(),
    ];
    store.append_audit(all.to_vec()).await.expect("kept");
    let base = AuditFilter::default;
    let actions = |actions: &[&str]| AuditFilter {
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
        ..base()
    };
    for (filter, wanted) in [
        (base(), vec!["a1", "a2", "a3", "a4", "a5"]),
        (actions(&["store."]), vec!["a1", "a2", "a5"]),
        (actions(&["store"]), vec![]),
        (actions(&["store.submission.", "interceptor.added"]), vec!["a1", "a2", "a4"]),
        (actions(&["%."]), vec![]),
        (AuditFilter { actor: "ada".into(), ..base() }, vec!["a2"]),
        (AuditFilter { resource: "interceptor:i".into(), ..base() }, vec!["a4"]),
        (AuditFilter { decision_id: "d9".into(), ..base() }, vec!["a5"]),
        (AuditFilter { start: Some(at(2)), end: Some(at(4)), ..base() }, vec!["a2", "a3", "a4"]),
    ] {
        for is_descending in [false, true] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let query = AuditQuery {
                    tenant: String::new(),
                    filter: filter.clone(),
                    is_descending,
                    after,
                    limit: 1,
                };
                let page = store.audit_events(query).await.expect("read");
                found.extend(page.events);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let mut wanted: Vec<NewAuditEvent> =
                all.iter().filter(|event| wanted.contains(&event.id.as_str())).cloned().collect();
            if is_descending {
                // Later ones first, equal ones by id in the same direction.
                wanted.sort_by(|a, b| b.time.cmp(&a.time).then(b.id.cmp(&a.id)));
            }
            assert_eq!(found, wanted, "{filter:?} {is_descending}");
        }
    }
    let resources = vec!["submission:s1".to_owned(), "interceptor:i".to_owned()];
    let about = store.audit_events_of(String::new(), resources.clone()).await.expect("read");
    assert_eq!(about, all[..5]);
    assert_eq!(store.audit_events_of("acme".into(), resources).await.expect("read"), [last]);
}

async fn many_writers_make_one_chain(place: TestPlace) {
    let stores = [place.open().await, place.open().await];
    let writes = (0..32_usize).map(|n| {
        let store = &stores[n % 2];
        async move {
            let id = format!("s{n}");
            if n % 4 == 0 {
                // With a change of the store, and with those of another tenant.
                let mut new = new(submission(&id, SubmissionStatus::Approved));
                new.events.push(NewAuditEvent { tenant: "acme".to_owned(), ..plain(&format!("x{n}"), 1) });
                store.accept(new).await.expect("accepted");
            } else {
                let pair = vec![plain(&format!("a{n}"), 1), plain(&format!("b{n}"), 2)];
                store.append_audit(pair).await.expect("kept");
            }
        }
    });
    futures_util::future::join_all(writes).await;
    let report = stores[0].verify_audit(String::new(), Default::default()).await.expect("read");
    assert!(whole(8 + 24 * 2)(&report), "{report:?}");
    let report = stores[1].verify_audit("acme".into(), Default::default()).await.expect("read");
    assert!(whole(8)(&report), "{report:?}");
    let report = stores[1].verify_audit("none".into(), Default::default()).await.expect("read");
    assert_eq!(report, ChainReport { length: 0, last_hash: String::new(), broken_at: None });
}

async fn what_was_changed_in_the_database_is_found(place: TestPlace) {
    let store = place.open().await;
    // More than are checked at once.
    let all: Vec<NewAuditEvent> = (1..=1_100).map(|n| plain(&format!("a{n:04}"), n)).collect();
    store.append_audit(all).await.expect("kept");
    let report = store.verify_audit(String::new(), Default::default()).await.expect("read");
    assert!(whole(1_100)(&report), "{report:?}");
    let triggers: &[&str] = match place.config.url {
        None => &["DROP TRIGGER audit_event_is_final", "DROP TRIGGER audit_event_stays"],
        Some(_) => &[
            "DROP TRIGGER audit_event_is_final ON audit_event",
            "DROP TRIGGER audit_event_stays ON audit_event",
        ],
    };
    let mut write = store.database.write().await.expect("begun");
    for trigger in triggers {
        write.run(Statement::new(*trigger)).await.expect("dropped");
    }
    write.commit().await.expect("done");
    for (forgery, undo, broken_at) in [
        (
            "UPDATE audit_event SET actor = 'eve' WHERE number = 1050",
            "SET actor = 'system' WHERE number = 1050",
            1050,
        ),
        ("UPDATE audit_event SET reason = 'x' WHERE number = 1", "SET reason = '' WHERE number = 1", 1),
        ("UPDATE audit_event SET number = 5000 WHERE number = 7", "SET number = 7 WHERE number = 5000", 7),
        (
            "UPDATE audit_event SET number = 1101 WHERE number = 1100",
            "SET number = 1100 WHERE number = 1101",
            1100,
        ),
        ("DELETE FROM audit_event WHERE number = 1100", "", 1100),
    ] {
        let mut write = store.database.write().await.expect("begun");
        assert_eq!(write.run(Statement::new(forgery)).await.expect("forged"), 1);
        write.commit().await.expect("done");
        let report = store.verify_audit(String::new(), Default::default()).await.expect("read");
        assert_eq!(report.broken_at, Some(broken_at), "{forgery}");
        if !undo.is_empty() {
            let mut write = store.database.write().await.expect("begun");
            write.run(Statement::new(format!("UPDATE audit_event {undo}"))).await.expect("undone");
            write.commit().await.expect("done");
            assert_eq!(
                store.verify_audit(String::new(), Default::default()).await.expect("read").broken_at,
                None,
                "{undo}"
            );
        }
    }
}

async fn an_event_is_kept_once(place: TestPlace) {
    let store = place.open().await;
    store.append_audit(vec![plain("a1", 1)]).await.expect("kept");
    let twice = store.append_audit(vec![plain("a2", 2), plain("a1", 3)]).await;
    assert!(matches!(twice, Err(StoreError::Refused { .. })), "{twice:?}");
    let report = store.verify_audit(String::new(), Default::default()).await.expect("read");
    assert!(whole(1)(&report), "all or none: {report:?}");
    store.append_audit(Vec::new()).await.expect("nothing to do");
}
