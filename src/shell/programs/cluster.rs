//! kubectl, oc, helm and other clients of clusters.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::Attributes;
use super::call::{Call, name_target};
use super::options::{Grammar, Options};

const KUBECTL: Grammar = Grammar {
    short_values: "nslfocLvk",
    short_attached: "",
    long: &[
        "namespace=",
        "context=",
        "cluster=",
        "kubeconfig=",
        "server=",
        "user=",
        "token=",
        "selector=",
        "filename=",
        "output=",
        "container=",
        "field-selector=",
        "grace-period=",
        "timeout=",
        "cascade=",
        "as=",
        "as-group=",
        "request-timeout=",
        "certificate-authority=",
        "client-certificate=",
        "client-key=",
        "kustomize=",
        "overrides=",
        "image=",
        "restart=",
        "env=",
        "labels=",
        "template=",
        "v=",
        "dry-run=?",
        "force",
        "all",
        "all-namespaces",
        "now",
        "wait=?",
        "pod-selector=",
        "image-pull-policy=",
        "annotations=",
        "port=",
        "override-type=",
        "target=",
        "profile=",
        "copy-to=",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `kubectl` and `oc`.
pub(super) fn kubectl(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let dashes = arguments.iter().position(|a| a.text == "--");
    let options = Options::parse(&arguments[..dashes.unwrap_or(arguments.len())], &KUBECTL);
    let payload = dashes.map_or(&[][..], |at| &arguments[at + 1..]);
    if options.value(&["dry-run"]).is_some_and(|v| v.text != "none") || options.has(&["help", "h"]) {
        return;
    }
    match options.operand(0) {
        "delete" => delete(call, &options),
        "drain" => infrastructure(call, "drain", options.operands.get(1).copied(), &options),
        "exec" | "debug" | "run" => {
            if let Some(overrides) = options.value(&["overrides"]) {
                overridden(call, overrides);
            }
            if options.operand(0) == "debug" && options.operand(1).starts_with("node/") {
                call.tell(EffectKind::EscapeSandbox, Some(name_target(options.operand(1))), "debug node");
            }
            if payload.is_empty() {
                // The old form has no dashes: `kubectl exec pod command`.
                let command: Vec<Argument> = options.operands.iter().skip(2).map(|a| (*a).clone()).collect();
                call.run(&command, "kubectl exec");
            } else {
                call.run(payload, "kubectl exec");
            }
        }
        "get" | "describe" => {
            let kinds = options.operand(1).to_ascii_lowercase();
            let secret = kinds.split(',').any(|k| matches!(k.split('/').next(), Some("secret" | "secrets")));
            if secret {
                let shown = options.value(&["o", "output"]).map_or("", |o| o.text.as_str());
                let values = shown.starts_with("yaml")
                    || shown.starts_with("json")
                    || shown.starts_with("go-template")
                    || shown.starts_with("custom-columns");
                let detail = if values { "kubectl get secret values" } else { "kubectl get secret" };
                let all = options.has(&["A", "all-namespaces"]);
                let attributes = Attributes { recursive: all, forced: false, detail: detail.to_owned() };
                call.effect(EffectKind::RevealSecret, None, attributes);
            }
        }
        "config" if options.operand(1) == "view" && options.has(&["raw"]) => {
            call.tell(EffectKind::RevealSecret, None, "kubectl config view --raw");
        }
        "create" if options.operand(1) == "token" => {
            call.tell(EffectKind::RevealSecret, None, "kubectl create token");
        }
        "replace" if options.has(&["force"]) => infrastructure(call, "replace --force", None, &options),
        "cp" => {
            if let [_, source, destination] = options.operands.as_slice() {
                if super::transfer::is_remote(&source.text) {
                    call.write(destination, "copy");
                } else {
                    call.read(source, true, "copy");
                }
            }
        }
        _ => {}
    }
}

fn infrastructure(call: &mut Call<'_, '_>, detail: &str, target: Option<&Argument>, options: &Options<'_>) {
    let attributes = Attributes {
        recursive: options.has(&["all", "A", "all-namespaces"]),
        forced: options.has(&["force", "now"]),
        detail: detail.to_owned(),
    };
    call.effect(EffectKind::DestroyInfrastructure, target.map(|t| name_target(&t.text)), attributes);
}

/// Kinds of resources with other people's data or the whole cluster behind them.
const WIDE: &[&str] = &[
    "namespace",
    "namespaces",
    "ns",
    "pv",
    "persistentvolume",
    "persistentvolumes",
    "pvc",
    "persistentvolumeclaim",
    "persistentvolumeclaims",
    "crd",
    "crds",
    "customresourcedefinition",
    "customresourcedefinitions",
    "node",
    "nodes",
    "no",
    "project",
    "projects",
    "clusterrole",
    "clusterroles",
    "clusterrolebinding",
    "clusterrolebindings",
    "storageclass",
    "all",
];

fn delete(call: &mut Call<'_, '_>, options: &Options<'_>) {
    let kinds = options.operand(1).to_ascii_lowercase();
    let wide = kinds.split(',').any(|kind| WIDE.contains(&kind.split(['/', '.']).next().unwrap_or_default()));
    let all = options.has(&["all", "A", "all-namespaces"]);
    let detail = match (wide, all) {
        (true, _) => format!("delete {}", kinds.split('/').next().unwrap_or_default()),
        (false, true) => "delete --all".to_owned(),
        (false, false) => "delete".to_owned(),
    };
    infrastructure(call, &detail, options.operands.get(2).copied(), options);
}

/// A pod's description given on the command line.
fn overridden(call: &mut Call<'_, '_>, overrides: &Argument) {
    let text: String =
        overrides.text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    for (key, detail) in [
        ("\"privileged\":true", "privileged"),
        ("\"hostpid\":true", "pid=host"),
        ("\"hostnetwork\":true", "network=host"),
        ("\"hostipc\":true", "ipc=host"),
        ("\"hostpath\":{\"path\":\"/\"", "mount"),
    ] {
        if text.contains(key) {
            let root =
                (detail == "mount").then(|| super::call::path_target(&super::call::word("/", overrides)));
            call.tell(EffectKind::EscapeSandbox, root, detail);
        }
    }
}

/// `helm`.
pub(super) fn helm(call: &mut Call<'_, '_>) {
    let options = call.options(&KUBECTL);
    if options.has(&["dry-run"]) {
        return;
    }
    match options.operand(0) {
        verb @ ("uninstall" | "delete" | "del" | "un") => {
            infrastructure(call, &format!("helm {verb}"), options.operands.get(1).copied(), &options);
        }
        "plugin" if options.operand(1) == "install" => {
            let source = options.operands.get(2).map(|o| super::call::network_target(o));
            call.tell(EffectKind::Install, source, "helm plugin");
        }
        _ => {}
    }
}

/// `kind`, `minikube`, `k3d`, `kops`, `eksctl`, `nomad`, `consul`: whole clusters and jobs.
pub(super) fn clusters(call: &mut Call<'_, '_>) {
    let program = call.program();
    let options =
        call.options(&Grammar { long: &["name=", "profile=", "state=", "region="], ..Grammar::default() });
    let words: Vec<&str> = options.operands.iter().map(|o| o.text.as_str()).collect();
    let local = matches!(program, "kind" | "minikube" | "k3d");
    let destroys = words.iter().take(2).any(|w| matches!(*w, "delete" | "destroy" | "purge"));
    if destroys && !local {
        let detail = format!("{program} {}", words.iter().take(2).copied().collect::<Vec<_>>().join(" "));
        infrastructure(call, &detail, options.operands.get(2).copied(), &options);
    }
}
