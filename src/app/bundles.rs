//! Bundles as the settings want them: the inline checks under the rules in force, the model that reviews, the service.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::{ServeError, models};
use crate::bundles::archive::{ArchiveLimits, Source};
use crate::bundles::service::{Asked, Clock, Inspect, Parts, Submissions};
use crate::bundles::spool::Spool;
use crate::bundles::{self, InspectLimits, Inspection, Inspector, Terms, WithoutKey};
use crate::config::Settings;
use crate::decision::BundleKind;
use crate::grpc::Uploads;
use crate::judge::Judge;
use crate::policy::Live;
use crate::store::{Repositories, open_bytes};
use crate::telemetry::Metrics;

/// The inline checks under whatever rules are in force when they begin.
struct LiveInspect {
    live: Arc<Live>,
    limits: ArchiveLimits,
}

impl Inspect for LiveInspect {
    fn inspect(
        &self,
        source: &dyn Source,
        kind: BundleKind,
        asked: &Asked,
    ) -> Result<(Inspection, String), String> {
        let snapshot = self.live.snapshot().ok_or("there is no usable policy; see the log of the service")?;
        let inspector =
            Inspector::of(&snapshot, InspectLimits { archive: self.limits, ..InspectLimits::default() });
        let terms = match snapshot.policies().get(&asked.policy) {
            Some(policy) => Terms { policy, tenant: &asked.tenant, now: asked.now },
            // Nobody says any more what it excused.
            None => Terms::strict(),
        };
        Ok((inspector.inspect_under(source, kind, terms), snapshot.revision().to_string()))
    }

    fn revision(&self) -> String {
        self.live.snapshot().map(|snapshot| snapshot.revision().to_string()).unwrap_or_default()
    }

    fn mask(&self, text: &str) -> String {
        let Some(snapshot) = self.live.snapshot() else { return "[REDACTED]".to_owned() };
        bundles::mask(snapshot.scanner(), text)
    }
}

/// The service of submissions over these repositories. Nothing runs by itself yet.
///
/// # Errors
/// The place of the bytes or the folder of uploads cannot be used, or the model of the settings.
pub(super) fn submissions(
    settings: &Settings,
    stores: &Repositories,
    live: Arc<Live>,
    metrics: Arc<Metrics>,
) -> Result<Submissions, ServeError> {
    let judge = reviewer(settings, &metrics)?;
    let folder = settings.data_dir.join("uploads");
    let spool = Spool::open(&folder)
        .map_err(|cause| ServeError::Uploads { path: folder, cause: cause.to_string() })?;
    let clock: Clock = Arc::new(Timestamp::now);
    Ok(Submissions::new(Parts {
        store: stores.submissions.clone(),
        audit: stores.audit.clone(),
        bytes: open_bytes(&settings.store, &settings.bundles_path())?,
        spool,
        inspect: Arc::new(LiveInspect { live, limits: settings.bundles.limits() }),
        judge,
        bundles: settings.bundles.clone(),
        guardrails: settings.guardrails.clone(),
        poll_interval: settings.store.poll_interval,
        metrics,
        clock,
    }))
}

/// Limits of uploads under way.
pub(super) fn uploads(settings: &Settings) -> Uploads {
    Uploads {
        places: Arc::new(Semaphore::new(settings.bundles.uploads_max)),
        idle_timeout: settings.bundles.upload_idle_timeout,
        timeout: settings.bundles.upload_timeout,
    }
}

/// The model that reviews bundles: that of `llm`, with the model, time and places of `guardrails`.
fn reviewer(settings: &Settings, metrics: &Arc<Metrics>) -> Result<Option<Arc<dyn Judge>>, ServeError> {
    let guardrails = &settings.guardrails;
    if !guardrails.enabled {
        return Ok(None);
    }
    let mut settings = settings.clone();
    settings.llm.model = review_model(&settings);
    settings.llm.timeout = guardrails.review_timeout;
    settings.llm.concurrency_max = guardrails.reviews_max;
    // Verdicts are remembered by the store, for all replicas.
    settings.llm.cache_bytes_max = 0;
    Ok(models::judge(&settings, models::observer(metrics.clone()))?)
}

/// A tier means something with Anthropic alone; elsewhere it stands for the model that judges anyway.
fn review_model(settings: &Settings) -> Option<String> {
    const TIERS: [&str; 3] = ["haiku", "sonnet", "opus"];
    let wanted = settings.guardrails.review_model.trim();
    let is_anthropic = settings.llm.resolved_backend() == Some(crate::judge::Backend::Anthropic);
    if is_anthropic || !TIERS.contains(&wanted) {
        Some(wanted.to_owned())
    } else {
        settings.llm.model.clone()
    }
}

/// Says how uploads are reviewed, and what looks like a review that was meant to be there.
pub(super) fn announce(settings: &Settings, submissions: &Submissions) {
    let guardrails = &settings.guardrails;
    match (guardrails.enabled, submissions.review_model(), guardrails.without_key) {
        (false, _, _) => {
            tracing::warn!(
                "guardrails.enabled is false: uploads that pass the inline checks are approved without review"
            );
        }
        (true, Some(model), _) => tracing::info!(model, "a model reviews uploads"),
        (true, None, WithoutKey::Hold) => tracing::warn!(
            "guardrails.enabled is true and no model has a key: uploads that pass the inline checks are held \
             (pending_llm, NO_KEY) until an administrator decides or the service starts with a key; set ANTHROPIC_API_KEY \
             or another key of `llm`, or guardrails.enabled: false"
        ),
        (true, None, WithoutKey::Approve) => tracing::warn!(
            "no model has a key and guardrails.without_key is approve: uploads that pass the inline checks are approved \
             without review"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Backend;

    #[test]
    fn a_tier_is_a_model_of_anthropic_alone() {
        for (backend, model, review, wanted) in [
            (Backend::Anthropic, None, "haiku", Some("haiku")),
            (Backend::Anthropic, Some("opus"), "sonnet", Some("sonnet")),
            (Backend::Anthropic, None, "claude-x-1", Some("claude-x-1")),
            (Backend::Gemini, Some("gemini-y"), "haiku", Some("gemini-y")),
            (Backend::Gemini, None, "opus", None),
            (Backend::Gemini, Some("gemini-y"), "gemini-z", Some("gemini-z")),
        ] {
            let mut settings = Settings::default();
            settings.llm.backend = backend;
            settings.llm.model = model.map(str::to_owned);
            review.clone_into(&mut settings.guardrails.review_model);
            assert_eq!(review_model(&settings).as_deref(), wanted, "{backend:?} {review}");
        }
    }
}
