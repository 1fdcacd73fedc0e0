//! How often one identity may call.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::{ANONYMOUS, Identity, RateLimitConfig};

/// A bucket of calls for each identity, filled at a steady rate.
///
/// All callers without credentials share one: whoever may state any name could have any number of them.
#[derive(Debug)]
pub struct RateLimit {
    buckets: DefaultKeyedRateLimiter<(String, String)>,
    clock: DefaultClock,
    per_second: u32,
}

impl RateLimit {
    /// The limit as configured; `None` when it is off.
    pub fn new(config: &RateLimitConfig) -> Option<Self> {
        let rate = NonZeroU32::new(u32::try_from(config.per_second).unwrap_or(u32::MAX))?;
        let burst = NonZeroU32::new(u32::try_from(config.burst).unwrap_or(u32::MAX)).unwrap_or(rate);
        let quota = Quota::per_second(rate).allow_burst(burst);
        let buckets = RateLimiter::keyed(quota);
        Some(Self { buckets, clock: DefaultClock::default(), per_second: rate.get() })
    }

    /// Takes one call out of the bucket of `identity`.
    ///
    /// # Errors
    /// The bucket is empty: how long until there is one again.
    pub fn take(&self, identity: &Identity) -> Result<(), Duration> {
        let name = if identity.is_authenticated() { identity.name() } else { ANONYMOUS };
        let key = (identity.tenant().to_owned(), name.to_owned());
        self.buckets.check_key(&key).map_err(|not_until| not_until.wait_time_from(self.clock.now()))
    }

    /// Calls a second of one identity.
    pub fn per_second(&self) -> u32 {
        self.per_second
    }

    /// Forgets buckets that are full again: identities that stopped calling.
    pub fn forget_idle(&self) {
        self.buckets.retain_recent();
        self.buckets.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Known, roles_of};

    #[test]
    fn each_identity_has_a_bucket_and_those_without_credentials_share_one() {
        assert!(RateLimit::new(&RateLimitConfig::default()).is_none());
        let limit = RateLimit::new(&RateLimitConfig { per_second: 1, burst: 2 }).expect("it is on");
        let known = |name: &str, tenant: &str| {
            let known = Known { name: name.to_owned(), tenant: tenant.to_owned(), ..Known::default() };
            Identity::known(roles_of(&[]), known)
        };
        for identity in [known("a", ""), known("b", ""), known("a", "t")] {
            assert_eq!([limit.take(&identity), limit.take(&identity)], [Ok(()), Ok(())]);
            let wait = limit.take(&identity).expect_err("the bucket is empty");
            assert!(wait > Duration::ZERO && wait <= Duration::from_secs(1), "{wait:?}");
        }
        let stated = |name: &str| Identity::anybody(Some(name.into()));
        assert_eq!([limit.take(&stated("x")), limit.take(&stated("y"))], [Ok(()), Ok(())]);
        assert!(limit.take(&stated("z")).is_err());
        assert!(limit.take(&Identity::anybody(None)).is_err());
        assert!(limit.take(&Identity::operator()).is_ok());
    }
}
