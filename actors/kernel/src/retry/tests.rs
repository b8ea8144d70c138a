//! Rules of `retry`, one by one.

use super::*;

#[test]
fn delays_double_up_to_the_longest() {
    let policy = RetryPolicy {
        max: Duration::from_secs(5),
        ..RetryPolicy::default()
    };
    let delays: Vec<u64> = (1..6).map(|failed| policy.delay(failed).as_secs()).collect();
    assert_eq!(delays, [1, 2, 4, 5, 5]);
}

#[test]
fn a_huge_count_does_not_overflow() {
    assert_eq!(RetryPolicy::default().delay(u32::MAX), Duration::from_mins(5));
}

#[test]
fn attempts_are_counted_with_the_first() {
    let policy = RetryPolicy::default().attempts(2);
    assert!(policy.allows_another(1));
    assert!(!policy.allows_another(2));
}
