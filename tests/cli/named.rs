//! One's own names: a procedure is named by its key wherever an id is taken, and found by its labels.

use std::path::Path;

use crate::Outcome;
use crate::golden::{made, steady};
use crate::journal::{Does, Job, Running, rest};
use crate::run::{Said, look};
use crate::site::{Site, Time, all};

/// An order with two labels that waits for an answer, and others.
fn orders(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        for (key, customer) in [("order-A1", "4711"), ("order-A2", "4712"), ("12", "4711")] {
            let does = Does::Asks("ship it?".to_owned());
            let submission = running.executor.submit(Job { lock: None, does }).key(key);
            let handle = submission.label("customer", customer).label("city", "New York").await?;
            rest(&running.executor, handle.id()).await?;
        }
        running.leave().await
    })
}

fn steadied(said: &Said) -> String {
    said.out.lines().map(|line| steady(line) + "\n").collect()
}

/// Each way to name the same procedure says the same, closed and running.
#[test]
fn a_key_is_as_good_as_an_id() -> Outcome {
    let place = made(orders)?;
    let site = || Site::open(&place.journal, Time::Still, all);
    let verbs = ["show ID", "why ID", "tree ID", "history ID", "export ID"];
    let ways: [&[&str]; 2] = [&["1.0", "1", "order-A1"], &["3.0", "key:12"]];
    let mut said = Vec::new();
    for verb in verbs {
        for names in ways {
            let all: Vec<Said> = names
                .iter()
                .map(|name| look(&verb.replace("ID", name), &place.journal))
                .collect::<Outcome<_>>()?;
            let first = all.first().ok_or("there are some")?;
            assert_eq!(first.code, Some(0), "{verb}: {}", first.err);
            for (one, name) in all.iter().zip(names) {
                assert_eq!(
                    (one.code, steadied(one)),
                    (first.code, steadied(first)),
                    "{verb} by {name}"
                );
            }
            said.push((verb, names, steadied(first)));
        }
    }
    let closed_ambiguous = look("show 12", &place.journal)?;
    let site = site()?;
    for (verb, names, closed) in said {
        if verb.starts_with("why") {
            // A dashboard explains but a few while its clock stands still.
            continue;
        }
        for name in names {
            let online = site.run(&verb.replace("ID", name))?;
            assert_eq!(steadied(&online), closed, "{verb} by {name}: {}", online.err);
        }
    }
    let unknown = site.run("show order-A9")?;
    assert!(
        unknown.code == Some(1) && unknown.err.contains("No procedure with the key \"order-A9\""),
        "{}",
        unknown.err
    );
    // A number that is somebody's key, too, names nobody for sure; a number that is no key names a family.
    for ambiguous in [
        closed_ambiguous,
        site.run("show 12")?,
        site.run("abort 12 --yes --reason test")?,
    ] {
        let told = "12 is ambiguous: it is the number of a family and the key of 3.0; write 12.0 or key:12";
        assert!(
            ambiguous.code == Some(2) && ambiguous.err.contains(told),
            "{}",
            ambiguous.err
        );
    }
    let done = site.run("abort order-A2 --yes --reason test")?;
    assert!(
        done.code == Some(0) && done.out.contains("2.0"),
        "{}{}",
        done.out,
        done.err
    );
    let none = site.run("abort order-A9 --yes --reason test")?;
    assert_eq!(none.code, Some(1), "{}", none.err);
    Ok(())
}

#[test]
fn what_a_closed_journal_does_not_know_is_said_with_its_name() -> Outcome {
    let place = made(orders)?;
    let unknown = look("show order-A9", &place.journal)?;
    assert!(
        unknown.code == Some(1) && unknown.err.contains("no procedure with the key \"order-A9\""),
        "{}",
        unknown.err
    );
    let empty = look("show key:", &place.journal)?;
    assert_eq!(empty.code, Some(2), "{}", empty.err);
    Ok(())
}

#[test]
fn lists_take_labels_and_keys_closed_and_running() -> Outcome {
    let place = made(orders)?;
    let cases: [(&str, &[&str]); 5] = [
        ("ls label:customer=4711", &["3.0", "1.0"]),
        ("ls key:order-", &["2.0", "1.0"]),
        ("ls key:=order-A2", &["2.0"]),
        ("ls label:customer=4711 key:=12", &["3.0"]),
        ("ls label:customer=4713", &[]),
    ];
    let ids = |said: &Said| -> Vec<String> {
        let rows = said.out.lines().skip(1);
        rows.filter_map(|row| row.split_whitespace().next().map(str::to_owned))
            .collect()
    };
    let site = Site::open(&place.journal, Time::Still, all)?;
    let mut online = Vec::new();
    for (arguments, expected) in cases {
        let said = site.run(arguments)?;
        assert_eq!(ids(&said), expected, "{arguments}: {}{}", said.out, said.err);
        online.push(said.out);
    }
    drop(site);
    for ((arguments, expected), online) in cases.iter().zip(online) {
        let said = look(arguments, &place.journal)?;
        assert_eq!(ids(&said), *expected, "{arguments}: {}{}", said.out, said.err);
        assert_eq!(said.out, online, "{arguments}");
    }
    let rows = look("ls key:=order-A1", &place.journal)?.out;
    assert!(
        rows.contains("LABELS") && rows.contains("city=New York customer=4711"),
        "{rows}"
    );
    let wrong = look("ls label:customer", &place.journal)?;
    assert!(
        wrong.code == Some(2) && wrong.err.contains("label:customer=4711"),
        "{}",
        wrong.err
    );
    Ok(())
}
