//! Which grants count, and which limits a birth names in vain.

use procession_kernel::{Birth, Blob, ChildPermits, Claim, ClaimId, Kind, LimitKey, ProcedureId};

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
fn a_grant_of_a_released_claim_is_stale_whatever_is_asked_later() {
    let (mut claims, born) = claims();
    assert_eq!(claims.unbind(ID), Some(born.id));
    assert_eq!((claims.claim(ID), claims.unbind(ID)), (None, None));
    assert_eq!(claims.accept(born), None);
    let next = claims.renew(ID);
    assert_ne!(next.id, born.id);
    assert_eq!((claims.accept(born), claims.accept(next)), (None, Some(ID)));
}

#[test]
fn a_child_that_names_a_limit_and_takes_no_permit_is_logged_once_for_its_kind() {
    let mut claims = Claims::new(vec![LimitKey::from("cards")]);
    let child = |kind: &str, limit: &str, permits| Birth {
        limit: Some(LimitKey::from(limit)),
        permits,
        ..Birth::new(Kind::from(kind), 1, Blob::default(), Blob::default())
    };
    for said in [
        child("exempt", "cards", Some(ChildPermits::Exempt)),
        child("inherits", "cards", Some(ChildPermits::Inherited)),
        child("unset", "other", None),
    ] {
        assert!(claims.limits_of(&said, true).is_empty());
    }
    let own = child("own", "cards", Some(ChildPermits::Own));
    assert_eq!(claims.limits_of(&own, true), [LimitKey::from("cards")]);
    assert!(claims.logged.is_empty());
    for _ in 0..2 {
        assert!(claims.limits_of(&child("charge", "cards", None), true).is_empty());
        assert!(claims.logged.iter().eq([&Kind::from("charge")]));
    }
    assert_eq!(
        claims.limits_of(&child("root", "cards", None), false),
        [LimitKey::from("cards")]
    );
    assert_eq!(claims.logged.len(), 1);
}
