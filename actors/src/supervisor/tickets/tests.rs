//! Whom a served ticket stands for.

use procession_kernel::{ProcedureId, Ticket};

use super::Tickets;

#[test]
fn one_that_has_asked_again_is_told_by_the_answer_alone() {
    let (id, ticket) = (ProcedureId::root(1), Ticket(7));
    let mut tickets = Tickets::new(Vec::new());
    tickets.bind(ticket, id);
    assert_eq!(tickets.served(ticket), Some(id));

    tickets.asks(id);
    tickets.asks(id);
    assert_eq!(tickets.served(ticket), None);
    tickets.hears(id);
    assert_eq!(tickets.served(ticket), None, "another question is out");
    tickets.hears(id);
    assert_eq!(tickets.served(ticket), Some(id));
    tickets.hears(id);
    assert_eq!(tickets.served(ticket), Some(id), "an answer to nothing changes nothing");
}
