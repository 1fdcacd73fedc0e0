//! `PolicyService`: policies and rules in force, reload, and trying out rules.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::server::Shared;
use super::{Changed, Identity, RequestError, convert, list_rules};
use crate::bundles::PreparedBundles;
use crate::decision::Severity;
use crate::detect::{Scanner, find_with_rule};
use crate::messages::{
    CacheConfig, CheckRequest, Field, FieldPath, Message, MessageEngine, MessagesConfig, parse_role,
};
use crate::pb::v1;
use crate::pb::v1::policy_service_server::PolicyService;
use crate::policy::{CallerRole, PolicySet, Reload, Snapshot};
use crate::rules::{CountrySet, RuleProblem, RuleSet, RuleSetConfig, RuleSource, self_check};
use crate::telemetry::{PolicyRejected, PolicyReloaded};
use crate::tools::{COMMAND_SAFETY, PATH_AUDIT, PreparedTools};

/// Largest rule file that may be tried out, in bytes: compiling is work, and anybody may ask for it.
const TRIAL_BYTES_MAX: usize = 64 * 1024;
/// Largest text that rules may be tried on, in bytes.
const TRIAL_TEXT_BYTES_MAX: usize = 256 * 1024;

/// The service.
pub(super) struct Policies(pub(super) Arc<Shared>);

impl Policies {
    fn snapshot(&self) -> Result<Arc<Snapshot>, Status> {
        self.0.live.snapshot().ok_or_else(|| RequestError::NotServing.to_status())
    }
}

#[tonic::async_trait]
impl PolicyService for Policies {
    async fn get_policy(
        &self,
        request: Request<v1::GetPolicyRequest>,
    ) -> Result<Response<v1::GetPolicyResponse>, Status> {
        let identity = Identity::of(&request).map_err(|e| e.to_status())?;
        let snapshot = self.snapshot()?;
        let asked = request.into_inner().name;
        let policy = identity.policy(&asked).ok().and_then(|name| snapshot.policies().get(name));
        let policy = policy.filter(|p| p.allows_caller(identity.roles)).ok_or_else(|| {
            let unknown =
                || RequestError::NotFound { what: "policy", name: asked.chars().take(60).collect() };
            identity.missing_policy(snapshot.policies(), &asked).unwrap_or_else(unknown).to_status()
        })?;
        let rejected = self.0.live.rejected();
        Ok(Response::new(v1::GetPolicyResponse {
            name: policy.name().to_string(),
            policy_revision: snapshot.revision().to_string(),
            yaml: policy.to_yaml(),
            names: snapshot
                .policies()
                .iter()
                .filter(|p| p.allows_caller(identity.roles) && identity.policy(p.name()).is_ok())
                .map(|p| p.name().to_string())
                .collect(),
            problems: rejected.as_ref().map(|r| r.problems.clone()).unwrap_or_default(),
            load_time: Some(convert::timestamp(snapshot.loaded())),
            reject_time: rejected.map(|r| convert::timestamp(r.time)),
        }))
    }

    async fn reload_policy(
        &self,
        request: Request<v1::ReloadPolicyRequest>,
    ) -> Result<Response<v1::ReloadPolicyResponse>, Status> {
        let identity = Identity::of(&request).map_err(|e| e.to_status())?;
        identity.require_admin().map_err(|e| e.to_status())?;
        let shared = self.0.clone();
        let before = self.0.revision();
        let reload = tokio::task::spawn_blocking(move || {
            let reload = shared.live.reload();
            shared.tell(&reload);
            reload
        })
        .await
        .map_err(|_| RequestError::Internal.to_status())?;
        self.0.record_reload(Some(&identity), &before, &reload).await;
        match reload {
            Reload::Rejected(rejected) => {
                Err(RequestError::PolicyRejected { problems: rejected.problems.clone() }.to_status())
            }
            Reload::Unchanged | Reload::Replaced(_) => Ok(Response::new(v1::ReloadPolicyResponse {
                policy_revision: self.snapshot()?.revision().to_string(),
                changed: matches!(reload, Reload::Replaced(_)),
            })),
        }
    }

    async fn list_rules(
        &self,
        request: Request<v1::ListRulesRequest>,
    ) -> Result<Response<v1::ListRulesResponse>, Status> {
        Identity::of(&request).map_err(|e| e.to_status())?;
        let snapshot = self.snapshot()?;
        let request = request.into_inner();
        list_rules::list(&snapshot, &request).map(Response::new).map_err(|e| e.to_status())
    }

    async fn test_rule(
        &self,
        request: Request<v1::TestRuleRequest>,
    ) -> Result<Response<v1::TestRuleResponse>, Status> {
        Identity::of(&request).map_err(|e| e.to_status())?;
        let request = request.into_inner();
        let _permit =
            self.0.in_flight.clone().try_acquire_owned().map_err(|_| RequestError::Overloaded.to_status())?;
        let runtime = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || runtime.block_on(try_out(&request)))
            .await
            .map_err(|_| RequestError::Internal.to_status())?
            .map(Response::new)
            .map_err(|e| e.to_status())
    }
}

/// Problems of a rejected reload that are recorded.
const RECORDED_PROBLEMS_MAX: usize = 20;

impl Shared {
    /// Revision of what is in force; empty where nothing is.
    pub fn revision(&self) -> String {
        self.live.snapshot().map(|snapshot| snapshot.revision().to_string()).unwrap_or_default()
    }

    /// Keeps the administrative event of a reload: of whoever asked for it, or of a file that changed by itself. `before` is
    /// the revision until then.
    pub async fn record_reload(&self, identity: Option<&Identity>, before: &str, reload: &Reload) {
        let (action, problems) = match reload {
            Reload::Rejected(rejected) => ("policy.rejected", rejected.problems.as_slice()),
            Reload::Unchanged => ("policy.unchanged", &[][..]),
            Reload::Replaced(_) => ("policy.reloaded", &[][..]),
        };
        let policy_revision = self.revision();
        let mut detail = serde_json::json!({ "prior_revision": before });
        if !problems.is_empty() {
            let told: Vec<&String> = problems.iter().take(RECORDED_PROBLEMS_MAX).collect();
            detail["problems"] = serde_json::json!(told);
        }
        let changed = Changed {
            action,
            resource: &format!("policy:{policy_revision}"),
            reason: "",
            policy_revision: &policy_revision,
            detail: Some(&detail),
        };
        match identity {
            Some(identity) => self.events.append(identity, changed).await,
            None => self.events.append_own(changed).await,
        }
    }

    /// Counts and logs a reload, and declares what new rules can report.
    pub fn tell(&self, reload: &Reload) {
        match reload {
            Reload::Unchanged => {}
            Reload::Replaced(snapshot) => {
                self.declare(snapshot);
                PolicyReloaded { revision: snapshot.revision() }.emit(&self.metrics);
                if let Some(warning) = snapshot.warning() {
                    tracing::warn!(revision = %snapshot.revision(), "{warning}");
                }
            }
            Reload::Rejected(rejected) => {
                let kept = self.live.snapshot();
                let kept_revision = kept.as_ref().map_or("", |s| s.revision());
                PolicyRejected { kept_revision, problems: &rejected.problems }.emit(&self.metrics);
            }
        }
    }

    /// Declares the plugins of a snapshot to the metrics.
    pub fn declare(&self, snapshot: &Snapshot) {
        let rules = snapshot.scanner().rules();
        for plugin in rules.plugins() {
            let of_rules = rules.rules().iter().map(|r| &*r.info);
            let of_plugin = of_rules.chain(snapshot.scanner().coded()).filter(|info| info.plugin == *plugin);
            self.metrics
                .declare_plugin(plugin, of_plugin.map(|info| (info.category.as_str(), info.severity)));
        }
        for (id, reports) in crate::messages::OWN_PLUGINS {
            self.metrics.declare_plugin(id, reports.iter().map(|severity| (id, *severity)));
        }
        for plugin in self.engine.plugins() {
            let reports = plugin.reports();
            let reports = reports.iter().map(|(category, severity)| (category.as_str(), *severity));
            self.metrics.declare_plugin(&plugin.descriptor().name, reports);
        }
        if let Some(prepared) = snapshot.prepared::<PreparedTools>() {
            let rules = prepared.commands().rules().iter();
            let commands = rules.map(|rule| (rule.category.as_str(), rule.severity));
            self.metrics.declare_plugin(COMMAND_SAFETY, commands);
            // A hit that only warns is reported as MEDIUM at most.
            let rules = prepared.paths().rules().iter();
            let paths = rules.flat_map(|rule| {
                [rule.severity, rule.severity.min(Severity::Medium)].map(|s| (rule.category.as_str(), s))
            });
            self.metrics.declare_plugin(PATH_AUDIT, paths);
            for interceptor in prepared.interceptors() {
                self.metrics.declare_interceptor(&interceptor.id);
                // A failure of it is counted under its id.
                self.metrics.declare_plugin(&interceptor.id, []);
            }
        }
        if let Some(prepared) = snapshot.prepared::<PreparedBundles>() {
            self.metrics.declare_plugin("bundles.static_security", prepared.kinds());
            self.metrics.declare_plugin("bundles.archive", [("archive", Severity::High)]);
            let manifest = [Severity::Low, Severity::High].map(|severity| ("manifest", severity));
            self.metrics.declare_plugin("bundles.manifest", manifest);
            self.metrics.declare_plugin("bundles.quality", [("quality", Severity::Low)]);
        }
        for (policy, suppression) in snapshot.policies().expired_suppressions(jiff::Timestamp::now()) {
            tracing::warn!(
                policy = &**policy.name(),
                rule = suppression.rule.as_deref().unwrap_or_default(),
                category = suppression.category.as_deref().unwrap_or_default(),
                expired = %suppression.expires,
                "suppression expired, its findings count again"
            );
        }
    }
}

/// Compiles rules apart from those in force and runs them over a text.
async fn try_out(request: &v1::TestRuleRequest) -> Result<v1::TestRuleResponse, RequestError> {
    if request.rule_toml.trim().is_empty() {
        return Err(RequestError::field("rule_toml", "is empty; send a rules file as TOML"));
    }
    for (what, found, limit) in [
        ("rule_toml", request.rule_toml.len(), TRIAL_BYTES_MAX),
        ("text", request.text.len(), TRIAL_TEXT_BYTES_MAX),
    ] {
        if found > limit {
            return Err(RequestError::field(
                what,
                format!("has {found} bytes, more than the limit of {limit}"),
            ));
        }
    }
    let role = match request.role.as_str() {
        "" => crate::rules::Role::User,
        name => parse_role(name).map_err(|e| RequestError::field("role", e))?,
    };
    let encoding = convert::offset_encoding(request.offset_encoding)?;
    let source = RuleSource::custom("rule_toml", "custom", request.rule_toml.as_str());
    let scanner = match RuleSet::compile(&[source], &RuleSetConfig::default()) {
        Ok(set) => Scanner::new(Arc::new(set)),
        Err(problems) => return Ok(refused(problems.0)),
    };
    let find = |_: &RuleSet, rule: u32, text: &str, role, surface| {
        find_with_rule(&scanner, rule, text, Some(role), Some(surface))
    };
    let checked = self_check(scanner.rules(), |_| true, &find);
    if !checked.problems.is_empty() {
        return Ok(refused(checked.problems));
    }
    let fields = vec![Field { path: FieldPath::Text, text: &request.text }];
    let messages = [Message { role, fields, media_parts: 0 }];
    let plugins: Vec<String> = scanner.rules().plugins().iter().map(|p| p.to_string()).collect();
    let snapshot = Snapshot::for_trial(PolicySet::built_in(), scanner);
    let config = CacheConfig { enabled: false, ..CacheConfig::default() };
    let engine = MessageEngine::new(MessagesConfig::default(), &config, Vec::new(), Vec::new());
    let outcome = engine
        .check(
            &snapshot,
            CheckRequest {
                messages: &messages,
                policy: "",
                caller_roles: &[CallerRole::Agent],
                tenant: "",
                plugins: &plugins,
                allow_list: &[],
                countries: CountrySet::EMPTY,
                direction: crate::decision::Direction::Input,
                encoding,
                redact: false,
                reveal: false,
                deadline: None,
                decision_id: "",
                sent: None,
            },
        )
        .await?;
    let findings = outcome.reported.into_iter().map(|reported| {
        let matched = request.text.get(reported.finding.span.start..reported.finding.span.end);
        let mut finding = convert::finding(reported.clone());
        finding.matched_text = matched.unwrap_or_default().to_owned();
        finding
    });
    Ok(v1::TestRuleResponse { findings: findings.collect(), problems: Vec::new() })
}

fn refused(problems: Vec<RuleProblem>) -> v1::TestRuleResponse {
    let problems = problems
        .into_iter()
        .map(|p| v1::RuleProblem {
            rule_id: p.rule_id,
            field: p.field,
            message: p.message,
            line: u32::try_from(p.line).unwrap_or(u32::MAX),
        })
        .collect();
    v1::TestRuleResponse { findings: Vec::new(), problems }
}
