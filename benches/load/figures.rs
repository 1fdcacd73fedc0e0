//! Percentiles, and what a scrape of the server tells.

use std::collections::BTreeMap;

/// Unary calls: those of the mix.
const UNARY: [&str; 4] = ["CheckMessages", "InterceptMessage", "InterceptParams", "InterceptTool"];

/// The value below which `share` of the values lie; 0 when there are none.
pub fn percentile(values: &mut [f32], share: f64) -> f64 {
    values.sort_by(f32::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get(((last as f64) * share).round() as usize).map_or(0.0, |value| f64::from(*value))
}

/// p50, p95 and p99, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Percentiles {
    /// Half of the values.
    pub p50: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
}

impl Percentiles {
    /// Of values in milliseconds.
    pub fn of(values: &mut [f32]) -> Self {
        Self { p50: percentile(values, 0.5), p95: percentile(values, 0.95), p99: percentile(values, 0.99) }
    }
}

/// Samples of one scrape, by series.
#[derive(Clone, Debug, Default)]
pub struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    /// Reads the text format of Prometheus.
    pub fn of(text: &str) -> Self {
        let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    /// What was added since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let change = |(series, value): (&String, &f64)| {
            (series.clone(), value - before.0.get(series).copied().unwrap_or(0.0))
        };
        Self(self.0.iter().map(change).collect())
    }

    /// Sum over the series of this name whose labels hold all of `labels`, such as `code="OK"`.
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let is_meant = |series: &str| {
            let (found, rest) = series.split_once('{').unwrap_or((series, ""));
            found == name && labels.iter().all(|label| rest.contains(label))
        };
        self.0.iter().filter(|(series, _)| is_meant(series)).map(|(_, value)| value).sum()
    }

    /// Unary calls that were answered with this code.
    pub fn unary_with(&self, code: &str) -> f64 {
        UNARY
            .iter()
            .map(|rpc| {
                let (rpc, code) = (format!("rpc=\"{rpc}\""), format!("code=\"{code}\""));
                self.sum("portcullis_requests_total", &[&rpc, &code])
            })
            .sum()
    }

    /// How long decided unary calls took, as the server counts it.
    pub fn unary_durations(&self) -> Percentiles {
        let mut buckets: BTreeMap<u64, f64> = BTreeMap::new();
        for (series, count) in &self.0 {
            let Some(labels) = series.strip_prefix("portcullis_request_duration_seconds_bucket{") else {
                continue;
            };
            if !UNARY.iter().any(|rpc| labels.contains(&format!("rpc=\"{rpc}\""))) {
                continue;
            }
            let limit =
                labels.split_once("le=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(limit, _)| limit);
            let limit = limit.and_then(|limit| limit.parse::<f64>().ok()).unwrap_or(f64::INFINITY);
            // Positive numbers sort as their bits do.
            *buckets.entry(limit.to_bits()).or_default() += count;
        }
        let buckets: Vec<(f64, f64)> =
            buckets.into_iter().map(|(bits, count)| (f64::from_bits(bits), count)).collect();
        let at = |share| within(&buckets, share) * 1e3;
        Percentiles { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    }
}

/// In seconds, as if what one bucket holds were spread evenly over it.
fn within(buckets: &[(f64, f64)], share: f64) -> f64 {
    let wanted = buckets.last().map_or(0.0, |(_, all)| all * share);
    let (mut low, mut below) = (0.0, 0.0);
    for (limit, count) in buckets {
        if *count >= wanted && *count > below {
            return if limit.is_finite() {
                low + (limit - low) * (wanted - below) / (count - below)
            } else {
                low
            };
        }
        (low, below) = (*limit, *count);
    }
    low
}
