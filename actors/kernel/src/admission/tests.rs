//! Rules of `admission`, one by one.

use super::*;

fn key(name: &str) -> LimitKey {
    LimitKey::from(name)
}

fn permits(limit: u32) -> Permits {
    Permits::new([(key("k"), Some(limit))])
}

fn ask(permits: &mut Permits, ticket: u64, priority: i16) -> Grant {
    permits.request(Ticket(ticket), vec![key("k")], priority)
}

#[test]
fn the_one_over_the_limit_waits_and_is_served_once() {
    let mut permits = permits(2);
    assert_eq!(ask(&mut permits, 1, 0), Grant::Granted);
    assert_eq!(ask(&mut permits, 2, 0), Grant::Granted);
    assert_eq!(ask(&mut permits, 3, 0), Grant::Queued);
    assert_eq!(permits.release(Ticket(1)), [Ticket(3)]);
    assert_eq!(permits.release(Ticket(1)), []);
}

#[test]
fn higher_priority_first_then_first_come() {
    let mut permits = permits(1);
    ask(&mut permits, 1, 0);
    for (ticket, priority) in [(2, 0), (3, 0), (4, 5)] {
        assert_eq!(ask(&mut permits, ticket, priority), Grant::Queued);
    }
    let order: Vec<Ticket> = [1, 4, 2]
        .into_iter()
        .flat_map(|ticket| permits.release(Ticket(ticket)))
        .collect();
    assert_eq!(order, [Ticket(4), Ticket(2), Ticket(3)]);
}

#[test]
fn raising_serves_exactly_the_difference_and_lowering_takes_nothing_back() {
    let mut permits = permits(1);
    for ticket in 1..=10 {
        ask(&mut permits, ticket, 0);
    }
    assert_eq!(permits.set_limit(key("k"), Some(4)), [Ticket(2), Ticket(3), Ticket(4)]);
    assert_eq!(permits.set_limit(key("k"), Some(1)), []);
    for ticket in 1..=3 {
        assert_eq!(permits.release(Ticket(ticket)), []);
    }
    assert_eq!(permits.release(Ticket(4)), [Ticket(5)]);
}

#[test]
fn one_who_leaves_the_queue_lets_the_next_pass() {
    let mut permits = permits(1);
    ask(&mut permits, 1, 0);
    ask(&mut permits, 2, 0);
    ask(&mut permits, 3, 0);
    assert_eq!(permits.release(Ticket(2)), []);
    assert_eq!(permits.release(Ticket(1)), [Ticket(3)]);
}

#[test]
fn several_limits_are_taken_together_or_not_at_all() {
    let mut permits = Permits::new([(key("k"), Some(1)), (key("x"), Some(1))]);
    let both = vec![key("k"), key("x")];
    permits.request(Ticket(1), vec![key("x")], 0);
    assert_eq!(permits.request(Ticket(2), both, 0), Grant::Queued);
    let used = |permits: &Permits| permits.usage().iter().map(|usage| usage.used).collect::<Vec<_>>();
    assert_eq!(used(&permits), [0, 1]);
    assert_eq!(permits.release(Ticket(1)), [Ticket(2)]);
    assert_eq!(used(&permits), [1, 1]);
}

#[test]
fn restored_holders_count_even_over_the_limit() {
    let mut permits = permits(1);
    permits.restore(Ticket(1), vec![key("k")], 0);
    permits.restore(Ticket(2), vec![key("k")], 0);
    assert_eq!(ask(&mut permits, 3, 0), Grant::Queued);
    assert_eq!(permits.release(Ticket(1)), []);
    assert_eq!(permits.release(Ticket(2)), [Ticket(3)]);
}
