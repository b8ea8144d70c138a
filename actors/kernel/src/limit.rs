//! What a limit allows: so many permits at once, so many begins in a time, or both.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// At most so many begins in any time of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub begins: u32,
    /// In how long a time.
    pub period: Duration,
}

/// The shortest period of a rate. The clock of the limiter is not read more often than that to any purpose.
pub const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

/// What a limit allows: so many permits at once, so many begins in a time, both, or anything (the default).
///
/// ```
/// use std::time::Duration;
///
/// use procession_kernel::Limit;
///
/// let four_at_once = Limit::at_once(4);
/// let a_hundred_a_minute = Limit::per(100, Duration::from_secs(60));
/// let both = a_hundred_a_minute.and_at_once(4);
/// assert_eq!((both.capacity(), both.rate()), (Some(4), a_hundred_a_minute.rate()));
/// assert_eq!(Limit::from(4), four_at_once);
/// assert_eq!(Limit::from(None), Limit::UNLIMITED);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    capacity: Option<u32>,
    rate: Option<Rate>,
}

impl Limit {
    /// No limit.
    pub const UNLIMITED: Self = Self {
        capacity: None,
        rate: None,
    };

    /// At most this many permits are out at once. With 0, nothing begins.
    #[must_use]
    pub const fn at_once(capacity: u32) -> Self {
        Self {
            capacity: Some(capacity),
            rate: None,
        }
    }

    /// At most this many permits are granted in any time of this length, however long each is held. The shortest period
    /// is 1 ms. With 0 begins, nothing begins.
    #[must_use]
    pub const fn per(begins: u32, period: Duration) -> Self {
        Self {
            capacity: None,
            rate: Some(Rate { begins, period }),
        }
    }

    /// Also lets at most this many permits be out at once.
    #[must_use]
    pub const fn and_at_once(self, capacity: u32) -> Self {
        Self {
            capacity: Some(capacity),
            ..self
        }
    }

    /// Returns how many permits may be out at once; `None` is unlimited.
    #[must_use]
    pub const fn capacity(self) -> Option<u32> {
        self.capacity
    }

    /// Returns how many may begin in a time; `None` is unlimited.
    #[must_use]
    pub const fn rate(self) -> Option<Rate> {
        self.rate
    }

    /// Checks that a limiter can keep it.
    ///
    /// # Errors
    ///
    /// The reason why it cannot, and what to set instead.
    pub fn check(self) -> Result<(), String> {
        match self.rate {
            Some(rate) if rate.period < SHORTEST_PERIOD => Err(format!(
                "a rate of {} in {:?}: the shortest period is 1 ms; name a longer one, with as many more begins",
                rate.begins, rate.period
            )),
            Some(_) | None => Ok(()),
        }
    }
}

impl From<u32> for Limit {
    fn from(capacity: u32) -> Self {
        Self::at_once(capacity)
    }
}

impl From<Option<u32>> for Limit {
    fn from(capacity: Option<u32>) -> Self {
        Self { capacity, rate: None }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {:?}", self.begins, self.period)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.capacity, self.rate) {
            (Some(capacity), None) => write!(f, "{capacity}"),
            (None, Some(rate)) => write!(f, "{rate}"),
            (Some(capacity), Some(rate)) => write!(f, "{rate}, and {capacity} at once"),
            (None, None) => f.write_str("unlimited"),
        }
    }
}

/// A limit with a rate, as it is stored. One without is a number or nil, as it was before there were rates.
#[derive(Serialize, Deserialize)]
struct StoredRate {
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    capacity: Option<u32>,
    #[serde(rename = "n")]
    begins: u32,
    #[serde(rename = "p")]
    period: Duration,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Capacity(Option<u32>),
    Rate(StoredRate),
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { capacity, rate } = *self;
        match rate {
            None => capacity.serialize(serializer),
            Some(Rate { begins, period }) => {
                let stored = StoredRate {
                    capacity,
                    begins,
                    period,
                };
                stored.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Capacity(capacity) => Self::from(capacity),
            Stored::Rate(StoredRate {
                capacity,
                begins,
                period,
            }) => Self {
                capacity,
                rate: Some(Rate { begins, period }),
            },
        })
    }
}
