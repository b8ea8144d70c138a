//! The audit of a small root: what it finds, what holds it up, and that no crash changes its report.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use procession::flow::{NodeState, SetState};
use procession::operate::OperatorRequest;
use procession::testkit::Check;

use super::ground::{Ground, checksum};
use super::nodes::Verify;
use super::*;

type Tested<T = ()> = Result<T, Box<dyn Error>>;

/// Set for the processes that a test starts: the words of the command line.
const WORDS: &str = "AUDIT_WORDS";
/// The test that starts them, and that they are.
const KILLED: &str = "tests::f_066_killed_again_and_again_it_reports_the_same";

fn in_system<T>(test: impl Future<Output = Tested<T>>) -> Tested<T> {
    actix_rt::System::new().block_on(test)
}

/// What the damaged root comes to, once its locked package can be read.
const LINES: [&str; 12] = [
    "app 1.0: 1 files, 0 changed, 0 missing, untrusted",
    "bash 1.0: 1 files, 1 changed, 0 missing, untrusted",
    "dash 1.0: 2 files, 0 changed, 0 missing, trusted",
    "data 1.0: 1 files, 0 changed, 1 missing, untrusted",
    "libc:amd64 1.0: 1 files, 0 changed, 0 missing, trusted",
    "libgcc 1.0: 1 files, 0 changed, 0 missing, trusted",
    "locked 1.0: 1 files, 0 changed, 0 missing, trusted",
    "nano 1.0: 1 files, 0 changed, 0 missing, trusted",
    "notes 1.0: 1 files, 0 changed, 0 missing, trusted",
    "perl 1.0: 0 files, 0 changed, 0 missing, trusted",
    "tool 1.0: 1 files, 0 changed, 0 missing, untrusted",
    "viewer 1.0: 1 files, 0 changed, 0 missing, trusted",
];

#[test]
fn f_066_what_differs_is_found_and_what_depends_on_it_is_untrusted() -> Tested {
    let ground = Ground::damaged()?;
    let closing = in_system(async { run(Audit::begin(ground.options("data", "")?).await?).await })?;
    // Locked, what needs it, and the report.
    assert_eq!(
        (closing.packages, closing.pending, closing.lines),
        (12, 3, 10),
        "{closing}"
    );
    ground.reinstall("locked")?;
    let closing = in_system(async { run(Audit::begin(ground.options("data", "")?).await?).await })?;
    assert_eq!(
        (closing.files, closing.changed, closing.missing),
        (12, 1, 1),
        "{closing}"
    );
    assert_eq!(
        (closing.untrusted, closing.pending, closing.lines),
        (4, 0, 12),
        "{closing}"
    );
    assert_eq!(closing.resumed, 10, "{closing}");
    assert_eq!(ground.lines("data")?, LINES);
    let wrong = "??5??????   /usr/share/bash/file\nmissing     /usr/share/data/file\n";
    assert_eq!(
        ground.report("data")?.get("files-that-differ").map(String::as_str),
        Some(wrong)
    );
    Ok(())
}

/// What `dpkg --verify` prints for the root with all sorts of differences, sorted.
const OF_ALL_SORTS: &str = "\
??5??????   /usr/share/libc/file
??5??????   /usr/share/libc/file
??5?????? c /etc/new.conf
??5?????? c /etc/old.conf
?M5??????   /usr/share/libc/link
missing     /usr/share/libc/nothing
missing     /usr/share/libc/nothing
missing     /usr/share/perl/gone.moved
";

#[test]
fn f_066_it_finds_what_dpkg_finds() -> Tested {
    let ground = Ground::of_all_sorts()?;
    let closing = in_system(async { run(Audit::begin(ground.options("data", "")?).await?).await })?;
    assert_eq!((closing.packages, closing.pending), (13, 0), "{closing}");
    let report = ground.report("data")?;
    assert_eq!(report.get("files-that-differ").map(String::as_str), Some(OF_ALL_SORTS));
    let root = format!("--root={}", ground.root().display());
    let dpkg = Command::new("dpkg").args([&root, "--verify"]).output();
    if dpkg
        .as_ref()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    {
        eprintln!("this machine has no dpkg to compare with");
        return Ok(());
    }
    let found = String::from_utf8(dpkg?.stdout)?;
    let mut lines: Vec<&str> = found.split_inclusive('\n').collect();
    lines.sort_unstable();
    assert_eq!(lines.concat(), OF_ALL_SORTS);
    Ok(())
}

#[test]
fn all_nodes_that_ask_are_tried_again_and_not_only_those_that_a_status_names() -> Tested {
    let ground = Ground::intact()?;
    let status = ground.root().join("var/lib/dpkg/status");
    let mut text = fs::read_to_string(&status)?;
    for number in 0..NAMED + 10 {
        text.push_str(&format!(
            "Package: more-{number:03}\nStatus: install ok installed\nVersion: 1.0\n\n"
        ));
        let list = ground.root().join(format!("var/lib/dpkg/info/more-{number:03}.list"));
        fs::write(list, "/usr/share/loop/file\n")?;
    }
    fs::write(status, text)?;
    symlink("loop", ground.root().join("usr/share/loop"))?;
    in_system(async {
        let audit = Audit::begin(ground.options("data", "--width 1000")?).await?;
        audit.watch().await?;
        let asking = audit.asking(audit.set.status().await?).await?;
        assert_eq!(asking.len(), NAMED + 10);
        audit.executor.drain(Duration::from_secs(1)).await?;
        Ok(())
    })
}

#[test]
fn a_report_that_was_cut_short_meanwhile_is_not_written_over() -> Tested {
    let ground = Ground::intact()?;
    let path = ground.data("report").join("utils.txt");
    let end = nodes::append_at(0, &path, "one\n")?;
    assert_eq!(nodes::append_at(end, &path, "two\n")?, 8);
    // A line that was written, and not committed, is written again.
    assert_eq!(nodes::append_at(end, &path, "II\n")?, 7);
    assert_eq!(fs::read_to_string(&path)?, "one\nII\n");
    fs::write(&path, "one")?;
    let why = nodes::append_at(end, &path, "two\n")
        .err()
        .ok_or("it was written")?
        .to_string();
    assert!(why.contains("has 3 bytes, but 4 were written"), "{why}");
    assert_eq!(fs::read_to_string(&path)?, "one");
    Ok(())
}

#[test]
fn f_066_with_hold_only_what_depends_on_a_changed_package_waits() -> Tested {
    let ground = Ground::damaged()?;
    ground.reinstall("locked")?;
    in_system(async {
        let audit = Audit::begin(ground.options("data", "--hold")?).await?;
        let set = audit.set.clone();
        let watched = actix_rt::spawn(async move { run(audit).await.map_err(|error| error.to_string()) });
        let status = loop {
            match set.status().await? {
                status if status.state == SetState::Pending => break status,
                _ => tokio::task::yield_now().await,
            }
        };
        let mut held = status.pending;
        held.sort();
        assert_eq!(held, ["bash", "data"]);
        let waiting = set.nodes(0, 100).await?.items.into_iter();
        let waiting = waiting
            .filter(|node| node.state == NodeState::Pending)
            .map(|node| node.name);
        let mut waiting: Vec<String> = waiting.collect();
        waiting.sort();
        assert_eq!(waiting, ["app", "bash", "data", "the report", "tool"]);
        ground.reinstall("bash")?;
        set.retry("bash", OperatorRequest::new("ann", "reinstalled")).await?;
        let accepted = OperatorRequest::new("ann", "nobody reads it");
        set.succeed::<Verify>("data", &true, accepted).await?;
        let closing = watched.await??;
        assert_eq!(
            (closing.changed, closing.missing, closing.untrusted),
            (0, 0, 0),
            "{closing}"
        );
        assert_eq!((closing.pending, closing.lines), (0, 12), "{closing}");
        Ok(())
    })?;
    let lines = ground.lines("data")?;
    assert!(
        lines.contains(&"data 1.0: accepted by a person".to_owned()),
        "{lines:?}"
    );
    assert_eq!(
        lines.iter().filter(|line| line.ends_with(", trusted")).count(),
        11,
        "{lines:?}"
    );
    Ok(())
}

#[test]
fn f_066_killed_again_and_again_it_reports_the_same() -> Tested {
    if let Ok(words) = std::env::var(WORDS) {
        // What it prints is all that is seen of it.
        return audit_as_told(&words).inspect_err(|error| println!("{error}"));
    }
    let ground = Ground::damaged()?;
    ground.reinstall("locked")?;
    let closing = ground.process("quiet", never)?.ok_or("it does not end")?;
    assert!(closing.contains("lines 12, resumed 0"), "{closing}");
    // In the beginning, in the middle, and with one package left; some of them twice.
    let mut ended = 0;
    for checked in [0, 1, 3, 3, 6, 9, 9, 11] {
        // The last ones may end before they can be killed.
        let is_there = |line: &str| {
            let count = line.strip_prefix("checked ").and_then(|count| count.parse().ok());
            count.is_some_and(|count: usize| count >= checked)
        };
        ended += usize::from(ground.process("killed", is_there)?.is_some());
    }
    assert!(ended < 4, "{ended} ended before they could be killed");
    let closing = ground.process("killed", never)?.ok_or("it does not end")?;
    assert!(closing.contains("lines 12"), "{closing}");
    assert_eq!(ground.report("killed")?, ground.report("quiet")?);
    Ok(())
}

/// A line that is being written each time the process is killed rests as poison at the fourth start, and is written once
/// more all the same.
#[test]
fn f_066_killed_in_the_same_line_three_times_it_goes_on() -> Tested {
    let ground = Ground::damaged()?;
    ground.reinstall("locked")?;
    let report = ground.data("killed").join("report");
    fs::create_dir_all(&report)?;
    // Whoever writes to a pipe that nobody reads waits.
    let pipe = report.join("editors.txt");
    assert!(Command::new("mkfifo").arg(&pipe).status()?.success());
    for _ in 0..3 {
        let closing = ground.process("killed", |line| line == "writing editors")?;
        assert_eq!(closing, None);
    }
    fs::remove_file(pipe)?;
    let closing = ground.process("killed", never)?.ok_or("it does not end")?;
    assert!(closing.contains("pending 0, lines 12"), "{closing}");
    Ok(())
}

/// A package that is read each time the process is killed is looked at once more all the same. At the third start it
/// asks, being in doubt; if that start is killed before it could ask, it rests as poison at the fourth, and keeps the only
/// place.
#[test]
fn f_066_killed_in_the_same_package_three_times_it_goes_on() -> Tested {
    let ground = Ground::damaged()?;
    ground.reinstall("locked")?;
    // Nobody reads a file of a terabyte to its end.
    fs::File::create(ground.file("notes"))?.set_len(1 << 40)?;
    for _ in 0..3 {
        let closing = ground.process("killed", |line| line == "reading notes")?;
        assert_eq!(closing, None);
    }
    ground.reinstall("notes")?;
    let closing = ground.process("killed", never)?.ok_or("it does not end")?;
    assert!(closing.contains("pending 0, lines 12"), "{closing}");
    Ok(())
}

impl Ground {
    /// Makes a root on which all differs that dpkg knows how to look at, and some that it does not.
    fn of_all_sorts() -> Tested<Self> {
        let ground = Self::intact()?;
        let records = ground.root().join("var/lib/dpkg");
        let add = |file: &str, text: &str| -> Tested {
            let path = records.join(file);
            let before = fs::read_to_string(&path).unwrap_or_default();
            Ok(fs::write(path, before + text)?)
        };
        // A second architecture of a package: both list one file, and each is asked about it.
        let stanza =
            "Package: libc\nStatus: install ok installed\nVersion: 1.0\nArchitecture: i386\nMulti-Arch: same\n";
        let conffiles = format!(
            "Conffiles:\n /etc/moved.conf {0}\n /etc/new.conf newconffile\n /etc/old.conf {0} obsolete\n\n",
            checksum("as it was")
        );
        add("status", &(stanza.to_owned() + &conffiles))?;
        let listed = "/usr/share/libc/file\n/usr/share/libc/link\n/usr/share/libc/nothing\n";
        let more = "/usr/share/perl/gone\n/etc/moved.conf\n/etc/new.conf\n/etc/old.conf\n";
        add("info/libc:i386.list", &(listed.to_owned() + more))?;
        add("info/libc:amd64.list", "/usr/share/libc/nothing\n")?;
        let sums = format!("{}  usr/share/libc/file\n{0}  usr/share/libc/link\n", checksum("libc"));
        add("info/libc:i386.md5sums", &sums)?;
        symlink("file", ground.root().join("usr/share/libc/link"))?;
        fs::write(ground.file("libc"), "something else")?;
        // What was moved away is never compared: it is there, or it is not.
        fs::write(ground.root().join("usr/share/perl/file.moved"), "something else")?;
        add("diversions", "/usr/share/perl/gone\n/usr/share/perl/gone.moved\ndash\n")?;
        add("diversions", "/etc/moved.conf\n/etc/moved.conf.moved\ndash\n")?;
        for file in ["moved.conf.moved", "new.conf", "old.conf"] {
            fs::write(ground.root().join("etc").join(file), "as it is")?;
        }
        Ok(ground)
    }

    fn options(&self, data: &str, more: &str) -> Tested<Options> {
        let words = self.words(data, more);
        Ok(Options::parse(
            words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned),
        )?)
    }

    fn words(&self, data: &str, more: &str) -> String {
        format!(
            "--root {} --data {} {more}",
            self.root().display(),
            self.data(data).display()
        )
    }

    /// Runs an audit in a process of its own, and kills it at the first line for which it is to be. Returns its last line
    /// if it ends by itself.
    fn process(&self, data: &str, is_killed_at: impl Fn(&str) -> bool) -> Tested<Option<String>> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--exact", KILLED, "--nocapture"])
            .env(WORDS, self.words(data, "--width 1"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("it has no output")?);
        let (mut last, mut said, mut is_killed) = (None, String::new(), false);
        for line in output.lines() {
            let line = line?;
            if is_killed_at(&line) {
                child.kill()?;
                is_killed = true;
            }
            said.push_str(&line);
            said.push('\n');
            last = line.starts_with("packages ").then_some(line).or(last);
        }
        if !child.wait()?.success() && !is_killed {
            return Err(said.into());
        }
        Ok(last)
    }
}

/// Is for a process that ends by itself.
fn never(_: &str) -> bool {
    false
}

/// Is the process that `Ground::process` starts: says how far it is, and the last line.
fn audit_as_told(words: &str) -> Tested {
    in_system(async {
        let audit = Audit::begin(Options::parse(words.split(' ').map(str::to_owned))?).await?;
        let told = actix_rt::spawn(tell_of(audit.executor.clone(), audit.set.clone()));
        let closing = run(audit).await?;
        told.abort();
        println!("\n{closing}");
        Ok(())
    })
}

/// Says how many packages were looked at, when one of them is being read, and when a line of the editors is being written.
async fn tell_of(executor: Executor, set: SetHandle) -> Tested {
    let (mut before, mut is_read, mut is_written) = (None, false, false);
    let editors = executor.stream(SCENE, "editors")?;
    loop {
        let checked = executor.scan::<Checked>(CHECKED, "").await?;
        if before.replace(checked.len()) != Some(checked.len()) {
            println!("checked {}", checked.len());
        }
        let is_reading = set.node("notes").await?.state == NodeState::Running;
        if is_reading && !std::mem::replace(&mut is_read, true) {
            println!("reading notes");
        }
        let line = editors.status().await?.in_hand;
        if line.is_some_and(|line| line.state == NodeState::Running) && !std::mem::replace(&mut is_written, true) {
            println!("writing editors");
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn f_066_an_audit_survives_every_crash() -> Tested {
    let ground = Ground::intact()?;
    let (root, report) = (Root(ground.root()), ReportDirectory(ground.data("report")));
    let installed = ground.root();
    let check = Check::set(
        move |builder| nodes::register(builder, root.clone(), report.clone()),
        move || plan::plan("audit".to_owned(), &Installed::read(&installed)?, false),
    );
    let check = check.client(async |_, run, id| {
        let audit = Audit {
            options: Options::parse(["--data", "unused"].map(str::to_owned).into_iter())?,
            executor: run.executor.clone(),
            set: run.executor.set_handle(id),
            resumed: 0,
            begun: SystemClock.now(),
        };
        // A set whose snapshot fails is stopped: that is an end as well.
        audit.watch().await.unwrap_or_default();
        Ok(())
    });
    check.crash_at_every_commit()?;
    check.run_stages_twice()?;
    Ok(())
}

#[test]
fn what_cannot_be_audited_is_refused_in_words() -> Tested {
    let ground = Ground::intact()?;
    let refused = |more: &str, data: &str| -> Tested<String> {
        let begun = in_system(async { Ok(Audit::begin(ground.options(data, more)?).await.map(drop)) })?;
        Ok(begun.err().ok_or("it was not refused")?.to_string())
    };
    let records = ground.root().join("var/lib/dpkg");
    fs::rename(records.join("status"), records.join("kept"))?;
    let why = refused("", "none")?;
    assert!(why.contains("status cannot be read: No such file"), "{why}");
    fs::write(records.join("status"), "Package: half\n")?;
    let why = refused("", "half")?;
    assert!(
        why.contains("cannot be understood: no package or no status at \"Package: half\""),
        "{why}"
    );
    let bad = "Package: bad\nStatus: install ok installed\nConffiles:\n /etc/bad sha256:17\n";
    fs::write(records.join("status"), bad)?;
    let why = refused("", "bad")?;
    assert!(why.contains("unknown checksum"), "{why}");
    fs::rename(records.join("kept"), records.join("status"))?;

    fs::write(records.join("info/nano.md5sums"), "17  usr/share/nano/file\n")?;
    let begun = in_system(async { Ok(run(Audit::begin(ground.options("sums", "")?).await?).await) })?;
    let why = begun.err().ok_or("it was not refused")?.to_string();
    assert!(why.contains("nano.md5sums has an unknown checksum"), "{why}");

    let why = refused("--hold", "sums")?;
    assert!(why.contains("has the audit of"), "{why}");
    fs::remove_dir_all(records)?;
    let why = refused("", "nothing")?;
    assert!(why.contains("names the root of a Debian system"), "{why}");
    let why = Options::parse(["--data".to_owned()].into_iter())
        .err()
        .unwrap_or_default();
    assert_eq!(why, "--data needs a value");
    Ok(())
}
