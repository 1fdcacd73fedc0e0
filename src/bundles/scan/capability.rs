//! What scripts and configuration make a bundle able to do.

use super::Scan;
use crate::bundles::mask;
use crate::shell::effect::EffectKind;

/// Longest detail that is shown, in characters.
const DETAIL_CHARS_MAX: usize = 200;

/// The capability that an effect of a command shows; `None` for what every script does.
pub(super) const fn of_effect(kind: EffectKind) -> Option<&'static str> {
    Some(match kind {
        EffectKind::Fetch | EffectKind::SendData => "network",
        EffectKind::FetchAndExecute | EffectKind::OpaqueExecution => "run_downloaded_code",
        EffectKind::ReverseShell | EffectKind::BindShell => "remote_shell",
        EffectKind::DeletePath => "delete_files",
        EffectKind::WritePath => "write_files",
        EffectKind::ReadPath => "read_files",
        EffectKind::Install => "install_packages",
        EffectKind::Persist => "persistence",
        EffectKind::ChangeAccount | EffectKind::ChangeKernel | EffectKind::StopSystem => "change_system",
        EffectKind::RevealSecret => "read_credentials",
        EffectKind::EscapeSandbox => "escape_sandbox",
        EffectKind::DisableProtection => "disable_protection",
        _ => return None,
    })
}

/// A detail as it may be shown: shortened, credentials and personal data masked.
pub(super) fn shown(scan: &Scan<'_, '_>, detail: &str) -> String {
    let text: String =
        detail.chars().take(DETAIL_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    mask(scan.engines.scanner, &text)
}
