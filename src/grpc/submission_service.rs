//! `SubmissionService`: looking at submissions and deciding about them.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

use super::bundle_convert::{kinds_of, statuses_of};
use super::local::CountMax;
use super::server::Shared;
use super::{Identity, RequestError, download, page, submission_convert as convert};
use crate::bundles::service::Submissions;
use crate::pb::v1;
use crate::pb::v1::submission_service_server::SubmissionService;
use crate::store::{ArchivedFilter, Place, SubmissionFilter, SubmissionKey, SubmissionQuery};

/// Submissions on one page unless asked otherwise.
const PAGE_SIZE: usize = 50;
/// Most submissions on one page.
const PAGE_SIZE_MAX: usize = 500;
/// Most submissions on one page with everything about them.
const FULL_PAGE_SIZE_MAX: usize = 50;

/// The service.
pub(super) struct Triage(pub(super) Arc<Shared>);

/// Answers of one watch.
type Watch = Pin<Box<dyn Stream<Item = Result<v1::WatchSubmissionResponse, Status>> + Send>>;

#[tonic::async_trait]
impl SubmissionService for Triage {
    type WatchSubmissionStream = Watch;
    type DownloadBundleStream = download::Answers<v1::DownloadBundleResponse>;

    async fn get_submission(
        &self,
        request: Request<v1::GetSubmissionRequest>,
    ) -> Result<Response<v1::GetSubmissionResponse>, Status> {
        let identity = self.0.identity(&request)?;
        let answer = get(&self.0.submissions, &identity, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn list_submissions(
        &self,
        request: Request<v1::ListSubmissionsRequest>,
    ) -> Result<Response<v1::ListSubmissionsResponse>, Status> {
        let identity = self.0.identity(&request)?;
        let count_max = request.extensions().get::<CountMax>().map(|most| most.0);
        let answer = list_counted(&self.0.submissions, &identity, request.into_inner(), count_max).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn watch_submission(
        &self,
        request: Request<v1::WatchSubmissionRequest>,
    ) -> Result<Response<Watch>, Status> {
        let identity = self.0.identity(&request)?;
        let request = request.into_inner();
        let watched = watch(&self.0.submissions, &identity, request).map_err(|error| error.to_status())?;
        let mut watched = Box::pin(watched);
        // What cannot be watched is told at once, not inside the stream.
        let first = match watched.next().await {
            Some(first) => first.map_err(|error| error.to_status())?,
            None => return Err(RequestError::Internal.to_status()),
        };
        let mut draining = self.0.draining.subscribe();
        let drained = async move {
            // An error means that the sender is gone, which only a stop does.
            let _ = draining.wait_for(|is_draining| *is_draining).await;
        };
        let all = futures_util::stream::iter([Ok(first)]).chain(watched);
        let answers = all.take_until(drained).map(|answer| answer.map_err(|error| error.to_status()));
        // A watch that ends without a final message was cut off: the client is to watch again elsewhere.
        Ok(Response::new(Box::pin(ended_well(answers))))
    }

    async fn override_submission(
        &self,
        request: Request<v1::OverrideSubmissionRequest>,
    ) -> Result<Response<v1::OverrideSubmissionResponse>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = publish(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn rescan_submission(
        &self,
        request: Request<v1::RescanSubmissionRequest>,
    ) -> Result<Response<v1::RescanSubmissionResponse>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = rescan(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn retry_review(
        &self,
        request: Request<v1::RetryReviewRequest>,
    ) -> Result<Response<v1::RetryReviewResponse>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = retry(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn download_bundle(
        &self,
        request: Request<v1::DownloadBundleRequest>,
    ) -> Result<Response<Self::DownloadBundleStream>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = async {
            let id = page::id("submission_id", request.submission_id)?;
            Ok(self.0.submissions.download(&identity.actor(""), &id).await?)
        };
        let download = answer.await.map_err(|error: RequestError| error.to_status())?;
        let answers = download::stream(download, |part| {
            use v1::download_bundle_response::Kind;
            let kind = match part {
                download::Part::Header(header) => Kind::Header(header),
                download::Part::Chunk(chunk) => Kind::Chunk(chunk),
            };
            v1::DownloadBundleResponse { kind: Some(kind) }
        });
        Ok(Response::new(answers))
    }

    async fn delete_submission(
        &self,
        request: Request<v1::DeleteSubmissionRequest>,
    ) -> Result<Response<v1::DeleteSubmissionResponse>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = delete(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn purge_blocked_bundles(
        &self,
        request: Request<v1::PurgeBlockedBundlesRequest>,
    ) -> Result<Response<v1::PurgeBlockedBundlesResponse>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = purge(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn reap_stuck_reviews(
        &self,
        request: Request<v1::ReapStuckReviewsRequest>,
    ) -> Result<Response<v1::ReapStuckReviewsResponse>, Status> {
        let (identity, request) = self.0.admin(request)?;
        let answer = reap(&self.0.submissions, &identity, request).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }
}

/// Gets one.
///
/// # Errors
/// A field is wrong, there is none that the caller may see, or the store failed.
pub async fn get(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::GetSubmissionRequest,
) -> Result<v1::GetSubmissionResponse, RequestError> {
    let id = page::id("submission_id", request.submission_id)?;
    let details = is_full(request.view, true)?;
    let found = submissions.get(&identity.actor(""), &id, details).await?;
    Ok(v1::GetSubmissionResponse { submission: Some(convert::submission(found)) })
}

/// Lists one page.
///
/// # Errors
/// A filter, the order or the token is wrong, or the store failed.
pub async fn list(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::ListSubmissionsRequest,
) -> Result<v1::ListSubmissionsResponse, RequestError> {
    list_counted(submissions, identity, request, None).await
}

async fn list_counted(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::ListSubmissionsRequest,
    count_max: Option<u64>,
) -> Result<v1::ListSubmissionsResponse, RequestError> {
    let filter = filter(&request)?;
    let (key, is_descending) = page::order(&request.order_by, "create_time desc", &SubmissionKey::ALL)?;
    let details = is_full(request.view, false)?;
    let actor = identity.actor("");
    // A token belongs to the list that it continues, and to whoever began it.
    let viewer = (!actor.is_admin && !actor.is_auditor).then_some(&actor.name);
    let list = format!("submissions {:?} {viewer:?} {filter:?} {key:?} {is_descending}", actor.tenant);
    let after = page::place(&request.page_token, &list)?.map(|(value, id)| Place { value, id });
    let most = if details { FULL_PAGE_SIZE_MAX } else { PAGE_SIZE_MAX };
    let limit = page::size(request.page_size, PAGE_SIZE, most);
    let tenant = actor.tenant.clone();
    let query = SubmissionQuery { tenant, filter, key, is_descending, after, limit, count_max };
    let found = submissions.list(&actor, query, details).await?;
    Ok(v1::ListSubmissionsResponse {
        next_page_token: found
            .next
            .map(|place| page::token(&place.value, &place.id, &list))
            .unwrap_or_default(),
        submissions: found.submissions.into_iter().map(convert::submission).collect(),
        total: found.total,
    })
}

/// Follows one: how it stands, then after each change, to the final one.
///
/// # Errors
/// A field is wrong. What else is wrong is the first and last item.
pub fn watch(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::WatchSubmissionRequest,
) -> Result<impl Stream<Item = Result<v1::WatchSubmissionResponse, RequestError>> + Send + use<>, RequestError>
{
    let id = page::id("submission_id", request.submission_id)?;
    let details = is_full(request.view, true)?;
    let watched = submissions.watch(identity.actor(""), id, details);
    Ok(watched.map(|watched| {
        let watched = watched?;
        let submission = Some(convert::submission(watched.submission));
        Ok(v1::WatchSubmissionResponse { submission, r#final: watched.is_final })
    }))
}

/// Publishes one against its verdict.
///
/// # Errors
/// A field is wrong, the submission does not allow it, a race was lost, or the store failed.
pub async fn publish(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::OverrideSubmissionRequest,
) -> Result<v1::OverrideSubmissionResponse, RequestError> {
    let id = page::id("submission_id", request.submission_id)?;
    let changed = submissions.publish(&identity.actor(""), &id, &request.reason).await?;
    Ok(v1::OverrideSubmissionResponse { submission: Some(convert::submission(changed)) })
}

/// Runs all checks again.
///
/// # Errors
/// As [`publish`].
pub async fn rescan(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::RescanSubmissionRequest,
) -> Result<v1::RescanSubmissionResponse, RequestError> {
    let id = page::id("submission_id", request.submission_id)?;
    let changed = submissions.rescan(&identity.actor(""), &id).await?;
    Ok(v1::RescanSubmissionResponse { submission: Some(convert::submission(changed)) })
}

/// Runs the review by a model again.
///
/// # Errors
/// As [`publish`].
pub async fn retry(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::RetryReviewRequest,
) -> Result<v1::RetryReviewResponse, RequestError> {
    let id = page::id("submission_id", request.submission_id)?;
    let changed = submissions.retry(&identity.actor(""), &id).await?;
    Ok(v1::RetryReviewResponse { submission: Some(convert::submission(changed)) })
}

/// Deletes one for good.
///
/// # Errors
/// As [`publish`].
pub async fn delete(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::DeleteSubmissionRequest,
) -> Result<v1::DeleteSubmissionResponse, RequestError> {
    let id = page::id("submission_id", request.submission_id)?;
    let changed = submissions.delete(&identity.actor(""), &id, &request.reason).await?;
    Ok(v1::DeleteSubmissionResponse { submission: Some(convert::submission(changed)) })
}

/// Removes the bytes of blocked submissions that are past the retention time.
///
/// # Errors
/// The store failed.
pub async fn purge(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::PurgeBlockedBundlesRequest,
) -> Result<v1::PurgeBlockedBundlesResponse, RequestError> {
    let purged = submissions.purge(&identity.actor(""), request.dry_run).await?;
    let (submission_ids, bytes_freed) = (purged.submission_ids, purged.bytes_freed);
    Ok(v1::PurgeBlockedBundlesResponse { submission_ids, bytes_freed })
}

/// Ends reviews that nobody works on any more.
///
/// # Errors
/// The store failed.
pub async fn reap(
    submissions: &Submissions,
    identity: &Identity,
    request: v1::ReapStuckReviewsRequest,
) -> Result<v1::ReapStuckReviewsResponse, RequestError> {
    let submission_ids = submissions.reap(&identity.actor(""), request.dry_run).await?;
    Ok(v1::ReapStuckReviewsResponse { submission_ids })
}

fn filter(request: &v1::ListSubmissionsRequest) -> Result<SubmissionFilter, RequestError> {
    let archived = match v1::ArchivedFilter::try_from(request.archived) {
        Ok(v1::ArchivedFilter::Unspecified | v1::ArchivedFilter::Exclude) => ArchivedFilter::Exclude,
        Ok(v1::ArchivedFilter::Only) => ArchivedFilter::Only,
        Ok(v1::ArchivedFilter::Include) => ArchivedFilter::Include,
        Err(_) => {
            return Err(RequestError::field(
                "archived",
                format!("{} is no ArchivedFilter", request.archived),
            ));
        }
    };
    Ok(SubmissionFilter {
        viewer: None,
        statuses: statuses_of(&request.statuses)?,
        kinds: kinds_of(&request.kinds)?,
        submitter: request.submitter.clone(),
        archived,
        entity_id: request.entity_id.clone(),
        bundle_sha256: request.bundle_sha256.to_ascii_lowercase(),
        text: request.query.clone(),
        start: page::moment("start_time", request.start_time.as_ref())?,
        end: page::moment("end_time", request.end_time.as_ref())?,
    })
}

/// Whether everything is to be answered; `unset` where the view says nothing.
fn is_full(view: i32, unset: bool) -> Result<bool, RequestError> {
    match v1::SubmissionView::try_from(view) {
        Ok(v1::SubmissionView::Unspecified) => Ok(unset),
        Ok(v1::SubmissionView::Basic) => Ok(false),
        Ok(v1::SubmissionView::Full) => Ok(true),
        Err(_) => Err(RequestError::field("view", format!("{view} is no SubmissionView"))),
    }
}

/// The answers, and an error where they end before the final one.
fn ended_well(
    answers: impl Stream<Item = Result<v1::WatchSubmissionResponse, Status>> + Send,
) -> impl Stream<Item = Result<v1::WatchSubmissionResponse, Status>> + Send {
    let state = (Box::pin(answers), false);
    futures_util::stream::unfold(state, |(mut answers, is_over)| async move {
        if is_over {
            return None;
        }
        match answers.next().await {
            Some(Ok(answer)) => {
                let is_over = answer.r#final;
                Some((Ok(answer), (answers, is_over)))
            }
            Some(Err(status)) => Some((Err(status), (answers, true))),
            None => Some((Err(RequestError::Draining.to_status()), (answers, true))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_and_filters_are_read_strictly() {
        for (view, unset, wanted) in [
            (0, true, Some(true)),
            (0, false, Some(false)),
            (1, true, Some(false)),
            (2, false, Some(true)),
            (3, false, None),
            (-1, true, None),
        ] {
            assert_eq!(is_full(view, unset).ok(), wanted, "{view}");
        }
        let request = |archived| v1::ListSubmissionsRequest { archived, ..Default::default() };
        for (archived, wanted) in [
            (0, Some(ArchivedFilter::Exclude)),
            (1, Some(ArchivedFilter::Exclude)),
            (2, Some(ArchivedFilter::Only)),
            (3, Some(ArchivedFilter::Include)),
            (4, None),
        ] {
            assert_eq!(filter(&request(archived)).ok().map(|filter| filter.archived), wanted, "{archived}");
        }
    }

    #[tokio::test]
    async fn a_watch_that_is_cut_off_says_so() {
        let answer = |is_final| Ok(v1::WatchSubmissionResponse { submission: None, r#final: is_final });
        for (given, wanted) in [
            (vec![answer(false), answer(true)], vec![Ok(false), Ok(true)]),
            (vec![answer(true), answer(false)], vec![Ok(true)]),
            (vec![answer(false)], vec![Ok(false), Err(tonic::Code::Unavailable)]),
        ] {
            let answers = ended_well(futures_util::stream::iter(given));
            let told: Vec<_> =
                answers.map(|answer| answer.map(|a| a.r#final).map_err(|s| s.code())).collect().await;
            assert_eq!(told, wanted);
        }
    }
}
