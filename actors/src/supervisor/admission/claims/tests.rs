//! Which grants count.

use procession_kernel::{Claim, ClaimId, ProcedureId};

use super::Claims;

const ID: ProcedureId = ProcedureId::root(1);

fn claims() -> (Claims, Claim) {
    let mut claims = Claims::new(Vec::new());
    let born = Claim::first(claims.new_claim());
    claims.bind(born, ID);
    (claims, born)
}

#[test]
fn a_grant_of_an_older_generation_is_stale() {
    let (mut claims, born) = claims();
    assert_eq!(claims.accept(born), Some(ID));

    let newer = claims.renew(ID);
    assert_eq!(newer.id, born.id, "a procedure has one claim");
    assert_eq!(claims.accept(born), None);
    assert_eq!(claims.accept(newer), Some(ID));
    let unknown = Claim::first(ClaimId(99));
    assert_eq!(claims.accept(unknown), None);
}

#[test]
fn a_grant_is_stale_as_soon_as_the_next_request_is_decided() {
    let (mut claims, born) = claims();
    claims.will_request(ID);
    assert_eq!(claims.accept(born), None, "served between the decision and its receipt");
    assert!(claims.may_request(ID));
    let sent = claims.current(ID);
    assert_eq!(claims.accept(sent), Some(ID));
}

#[test]
fn of_two_decided_requests_only_the_later_is_sent() {
    let (mut claims, _) = claims();
    claims.will_request(ID);
    claims.will_request(ID);
    assert!(!claims.may_request(ID), "its answer would be stale");
    assert!(claims.may_request(ID));
}

#[test]
fn a_released_claim_keeps_its_generations_while_a_request_is_under_way() {
    let (mut claims, born) = claims();
    claims.will_request(ID);
    assert_eq!(claims.unbind(ID), Some(born.id));
    assert_eq!(claims.accept(born), None);
    assert!(claims.may_request(ID));
    assert_eq!(claims.current(ID).id, born.id);

    assert_eq!(claims.unbind(ID), Some(born.id));
    assert_eq!(claims.claim(ID), None);
    let next = claims.renew(ID);
    assert_ne!(next.id, born.id);
}
