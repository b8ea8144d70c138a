//! What is printed on a terminal, and what shells and `man` read of the program; logins that stand on no command line.

use std::fs;

use crate::Outcome;
use crate::golden::made;
use crate::journal::of_each;
use crate::run::{on_a_terminal, procession, procession_in};
use crate::site::{Site, Time, who_knows};

#[test]
fn on_a_terminal_ages_are_shown_and_columns_are_cut() -> Outcome {
    let place = made(of_each)?;
    let ls = format!("ls --all --data {}", place.journal.display());
    let shown = on_a_terminal(40, 70, "", &ls)?;
    assert_eq!(shown.code, Some(0), "{}", shown.out);
    let lines = || shown.out.lines().map(|line| line.trim_end_matches('\r'));
    let header = lines().next().unwrap_or_default();
    assert!(header.starts_with("ID") && header.contains("SINCE"), "{header}");
    let rows: Vec<&str> = lines().filter(|line| line.contains(".0  ")).collect();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row.contains('…')),
        "{}",
        shown.out
    );
    let instants = on_a_terminal(40, 200, "", &format!("{ls} --utc"))?;
    assert!(instants.out.contains("2026-09-21T14:13:20Z"), "{}", instants.out);
    let ages = on_a_terminal(40, 200, "", &ls)?;
    assert!(
        !ages.out.contains("2026-09-21T14:13:20Z") && ages.out.contains(" ago "),
        "{}",
        ages.out
    );
    Ok(())
}

#[test]
fn what_does_not_fit_goes_through_the_pager() -> Outcome {
    let place = made(of_each)?;
    let ls = format!("ls --all --data {}", place.journal.display());
    let paged = on_a_terminal(5, 200, "sed s/^/paged:/", &ls)?;
    assert!(paged.out.starts_with("paged:ID"), "{}", paged.out);
    let fits = on_a_terminal(60, 200, "sed s/^/paged:/", &ls)?;
    assert!(fits.out.starts_with("ID"), "{}", fits.out);
    let none = on_a_terminal(5, 200, "/no/such/pager", &ls)?;
    assert!(none.out.starts_with("ID"), "{}", none.out);
    Ok(())
}

#[test]
fn shells_and_man_know_every_verb() -> Outcome {
    for shell in ["bash", "zsh", "fish"] {
        let script = procession(["completion", shell])?;
        assert_eq!(script.code, Some(0), "{}", script.err);
        assert!(script.out.contains("run-again"), "{shell}");
    }
    let root = tempfile::tempdir()?;
    let pages = root.path().join("man1");
    let place = pages.to_str().ok_or("the directory's name is not UTF-8")?;
    let written = procession(["man", place])?;
    assert_eq!(written.code, Some(0), "{}", written.err);
    for page in ["procession.1", "procession-run-again.1", "procession-saga-run.1"] {
        assert!(fs::read_to_string(pages.join(page))?.contains(".TH"), "{page}");
    }
    Ok(())
}

#[test]
fn a_token_comes_from_a_file_the_environment_or_a_profile() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(&root.path().join("journal"), Time::Still, who_knows)?;
    let token = root.path().join("live.token");
    fs::write(&token, "sesame\n")?;
    let config = root.path().join("config.toml");
    let profile = format!(
        "[profiles.live]\nurl = \"{}\"\ntoken-file = \"live.token\"\n",
        site.url()
    );
    fs::write(&config, profile)?;
    let text = |path: &std::path::Path| path.to_str().map(str::to_owned).ok_or("the name is not UTF-8");
    let (token, config) = (text(&token)?, text(&config)?);
    let url = ["--url", site.url()];
    let no_login = procession_in(&[], ["ls"].into_iter().chain(url))?;
    assert_eq!(no_login.code, Some(5), "{}", no_login.err);
    let from_environment = procession_in(&[("PROCESSION_TOKEN", "sesame")], ["ls"].into_iter().chain(url))?;
    assert_eq!(from_environment.code, Some(0), "{}", from_environment.err);
    let from_file = procession_in(&[], ["ls", "--token-file", &token].into_iter().chain(url))?;
    assert_eq!(from_file.code, Some(0), "{}", from_file.err);
    let settings = [("PROCESSION_CONFIG", config.as_str())];
    let from_profile = procession_in(&settings, ["ls", "--profile", "live"])?;
    assert_eq!(from_profile.code, Some(0), "{}", from_profile.err);
    let before_environment = [
        ("PROCESSION_CONFIG", config.as_str()),
        ("PROCESSION_TOKEN", "of another"),
    ];
    let named = procession_in(&before_environment, ["ls", "--profile", "live"])?;
    assert_eq!(named.code, Some(0), "{}", named.err);
    let of_other = "[profiles.live]\nurl = \"http://127.0.0.1:1/ops\"\ntoken-file = \"live.token\"\n";
    fs::write(root.path().join("other.toml"), of_other)?;
    let other = text(&root.path().join("other.toml"))?;
    let elsewhere = [("PROCESSION_CONFIG", other.as_str()), ("PROCESSION_PROFILE", "live")];
    let elsewhere = procession_in(&elsewhere, ["ls"].into_iter().chain(url))?;
    assert_eq!(
        elsewhere.code,
        Some(5),
        "a profile's token is for its address: {}",
        elsewhere.out
    );
    let unknown = procession_in(&settings, ["ls", "--profile", "test"])?;
    assert!(
        unknown.code == Some(2) && unknown.err.contains("it has live"),
        "{}",
        unknown.err
    );
    let missing = procession_in(&[], ["ls", "--token-file", "/no/such/file"].into_iter().chain(url))?;
    assert!(
        missing.code == Some(2) && missing.err.contains("/no/such/file"),
        "{}",
        missing.err
    );
    Ok(())
}
