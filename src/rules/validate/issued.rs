//! Beginnings by which tokens of known issuers are told.
//!
//! A value under the name `token` that begins like a token of an issuer, and is none by the rule of that issuer's
//! format, is a mistyped or shortened one; rules about names leave it alone.

/// What tokens begin with. Each has a rule of its own format.
const PREFIXES: &[&str] = &[
    "hvs.",
    "hvb.",
    "hvr.",
    "xoxa-",
    "xoxb-",
    "xoxc-",
    "xoxd-",
    "xoxe-",
    "xoxe.",
    "xoxo-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "npm_",
    "pypi-",
    "sk-ant-",
    "sk-proj-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "dapi",
    "tskey-",
    "px-api-",
    "px-dep-",
    "nrak-",
    "nraa-",
    "ops_eyj",
    "sg.",
    "dop_v1_",
    "doo_v1_",
    "dor_v1_",
    "dp.pt.",
    "dp.st.",
    "dp.ct.",
    "lin_api_",
    "ntn_",
    "figd_",
    "shpat_",
    "shpss_",
    "shpca_",
    "shppa_",
    "glsa_",
    "glc_",
    "sntrys_",
    "sntryu_",
    "dt0c01.",
    "hf_",
    "gsk_",
    "pplx-",
    "xai-",
    "nvapi-",
    "tvly-",
    "lsv2_",
    "rubygems_",
    "dckr_pat_",
    "sq0atp-",
    "sq0csp-",
    "sm_aat_",
    "sm_pat_",
    "sm_sat_",
    "ya29.",
    "gocspx-",
    "aiza",
    "amzn.mws.",
    "rnd_",
    "sbp_",
    "pscale_",
    "ccipat_",
    "pmak-",
];

/// Kinds that GitLab writes between `gl` and a hyphen.
const GITLAB_KINDS: &[&str] =
    &["pat", "dt", "rt", "rtr", "ft", "cbt", "ptt", "soat", "imt", "agent", "oas", "ffct", "wt"];

/// Whether `value` begins as tokens of a known issuer do.
pub(super) fn begins_as_issued(value: &str) -> bool {
    let starts_with =
        |prefix: &&str| value.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
    PREFIXES.iter().any(starts_with) || is_gitlab(value) || is_telegram(value)
}

fn is_gitlab(value: &str) -> bool {
    value
        .strip_prefix("gl")
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(kind, _)| GITLAB_KINDS.contains(&kind))
}

/// `123456:A…`, the id of a bot and the token behind a colon.
fn is_telegram(value: &str) -> bool {
    value.split_once(':').is_some_and(|(id, token)| {
        (4..=20).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit()) && token.starts_with('A')
    })
}
