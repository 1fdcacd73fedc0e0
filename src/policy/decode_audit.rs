//! `audit` of a policy file.

use super::audit::AuditFilter;
use super::decode::{Decoder, at, join};
use super::schema::{AUDIT_FILTER_KEYS, AUDIT_KEYS, DECISION_RPCS, Layer};
use super::tree::Node;
use super::values::{nearest_or_list, shown};

impl Decoder<'_> {
    pub(super) fn audit(&mut self, layer: &mut Layer, node: &Node, path: &str) {
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "sample_allow" => {
                    layer.sample_allow = self.share(node, &inner).map(|share| share.value);
                }
                "filters" => layer.filters = self.audit_filters(node, &inner),
                _ => self.unknown_key(key, path, AUDIT_KEYS),
            }
        }
    }

    fn audit_filters(&mut self, node: &Node, path: &str) -> Vec<AuditFilter> {
        let items = self.list(node, path, "a list of filters").unwrap_or_default();
        let filters = items.iter().enumerate().map(|(i, item)| self.audit_filter(item, &at(path, i)));
        filters.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    fn audit_filter(&mut self, node: &Node, path: &str) -> Option<AuditFilter> {
        let before = self.problems.len();
        let (mut rpcs, mut tools, mut agents, mut sample_allow) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
        for (key, node) in self.mapping(node, path) {
            let inner = join(path, &key.text);
            match key.text.as_str() {
                "rpcs" => rpcs = self.decision_rpcs(node, &inner),
                "tools" => tools = self.texts(node, &inner, "a list of names of tools"),
                "agents" => agents = self.texts(node, &inner, "a list of ids of agents"),
                "sample_allow" => sample_allow = self.share(node, &inner).map_or(0.0, |share| share.value),
                _ => self.unknown_key(key, path, AUDIT_FILTER_KEYS),
            }
        }
        if self.problems.len() > before {
            return None;
        }
        if rpcs.is_empty() && tools.is_empty() && agents.is_empty() {
            let place = self.place(node.line, node.column, path);
            let fix =
                "name `rpcs`, `tools` or `agents`; for all decisions that allow set `audit.sample_allow`";
            self.report(place, "the filter fits everything".to_owned(), fix.to_owned());
            return None;
        }
        Some(AuditFilter { rpcs, tools, agents, sample_allow })
    }

    fn decision_rpcs(&mut self, node: &Node, path: &str) -> Vec<String> {
        let items = self.list(node, path, "a list of calls").unwrap_or_default();
        let mut rpcs = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let Some(rpc) = self.text(item, &at(path, index)) else { continue };
            if DECISION_RPCS.contains(&rpc.value.as_str()) {
                rpcs.push(rpc.value);
            } else {
                let what = format!("no call whose decisions can be left out: `{}`", shown(&rpc.value));
                self.report(rpc.place, what, nearest_or_list(&rpc.value, DECISION_RPCS));
            }
        }
        rpcs
    }
}
