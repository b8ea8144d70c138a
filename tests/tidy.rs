//! House rules as tests: who may import whom, what each file begins with, and
//! which words never land. The tables they go by stand in `tidy/tables.rs`.
//!
//! Each rule is a function from text to what is wrong with it, so that
//! `every_rule_can_fail` can show that it bites.

#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/excerpts.rs"]
mod excerpts;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/reading.rs"]
mod reading;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/tables.rs"]
mod tables;

use std::fs;

use dependencies::{compiled, too_new, wrong_rust_versions};
use excerpts::loose_blocks;
use links::wrong_links;
use reading::{
    Checked, Source, check, code, lines_naming, package_below, root, rust_below, shown_file, sources, verdict,
};
use rules::*;
use tables::*;

#[test]
fn the_kernel_depends_on_serde_alone() -> Checked {
    let manifest = fs::read_to_string(root().join("actors/kernel/Cargo.toml"))?;
    verdict(
        "the kernel's [dependencies] hold serde and nothing else; move what needs more into actors",
        &wrong_dependencies(&manifest, &["serde"]),
    )
}

#[test]
fn the_kernel_is_arithmetic() -> Checked {
    check(
        "the kernel has no clock, no hash order, no threads and no I/O; pass what it needs as an argument",
        &rust_below("actors/kernel/src")?,
        |source| wrong_names(source, NOT_IN_KERNEL),
    )
}

#[test]
fn the_language_of_sagas_depends_on_no_engine() -> Checked {
    let manifest = fs::read_to_string(root().join("src/saga/language/Cargo.toml"))?;
    verdict(
        &format!("the language of sagas depends on {NEEDED_BY_LANGUAGE:?}; what runs sagas belongs to src/saga"),
        &wrong_dependencies(&manifest, NEEDED_BY_LANGUAGE),
    )
}

#[test]
fn the_language_of_sagas_acts_on_nothing() -> Checked {
    let mut sources = rust_below("src/saga/language")?;
    sources.retain(|source| !is_test(&source.path));
    check(
        &format!("the language of sagas has no clock, no threads and no I/O, but that {READS_DEFINITIONS} reads files"),
        &sources,
        |source| {
            let reads = source.path == READS_DEFINITIONS;
            let names = NOT_IN_LANGUAGE.iter().filter(|name| !(reads && **name == "fs"));
            wrong_names(source, &names.copied().collect::<Vec<_>>())
        },
    )
}

#[test]
fn only_the_journal_names_its_store_and_its_codec() -> Checked {
    for (name, folder, allowed) in ONLY_IN {
        let mut sources = rust_below(folder)?;
        sources.retain(|source| !allowed.iter().any(|place| source.path.starts_with(place)));
        check(
            &format!("below {folder} only {allowed:?} may name {name}; go through what stands there"),
            &sources,
            |source| {
                let code = code(&source.text);
                let used = lines_naming(&code, name).into_iter().filter(|(_, line)| {
                    line.contains(&format!("{name}::"))
                        && !line.contains(&format!("::{name}::"))
                        && !line.starts_with("mod ")
                });
                used.map(|(at, _)| format!("{}:{at}", source.path)).collect()
            },
        )?;
    }
    Ok(())
}

#[test]
fn only_the_journal_names_a_store() -> Checked {
    let mut sources = rust_below("actors/src")?;
    sources.retain(|source| !source.path.starts_with("actors/src/journal"));
    check(
        "only journal/ names a store's module; use what journal.rs exports",
        &sources,
        store_names,
    )
}

#[test]
fn packages_import_downward() -> Checked {
    for (folder, allowed) in PACKAGES {
        check(
            &format!("{folder} may name {allowed:?} only: src/cli → src → actors → kernel"),
            &package_below(folder)?,
            |source| wrong_packages(source, allowed),
        )?;
    }
    Ok(())
}

#[test]
fn modules_import_downward() -> Checked {
    let packages = [
        ("actors/kernel/src", KERNEL),
        ("actors/src", ACTORS),
        ("src", FACADE),
        ("src/cli", PROGRAM),
        ("src/saga/language", LANGUAGE),
    ];
    for (folder, layers) in packages {
        check(
            &format!(
                "{folder}: a module uses its own layer and those before it (tables in tests/tidy/tables.rs); turn the import round"
            ),
            &package_below(folder)?,
            |source| wrong_order(source, folder, layers),
        )?;
    }
    Ok(())
}

#[test]
fn wings_own_their_fields() -> Checked {
    let sources = rust_below("actors/src/supervisor")?;
    for (wing, name) in WINGS {
        let file = format!("actors/src/supervisor/{wing}.rs");
        let is_there = sources.iter().any(|source| source.path == file);
        verdict(
            "a wing of the table in tests/tidy/tables.rs is a file of its own",
            &Vec::from_iter((!is_there).then_some(file)),
        )?;
        check(
            &format!("{wing} is a wing: its files do not name the supervisor, and the fields of `{name}` are private"),
            &sources,
            |source| wrong_wing(source, wing, name),
        )?;
    }
    Ok(())
}

#[test]
fn only_its_own_file_names_the_supervisor() -> Checked {
    check(
        "message handlers and decisions of the supervisor stand in supervisor.rs; everything below its folder is a value",
        &rust_below("actors/src/supervisor")?,
        wrong_supervisor,
    )
}

#[test]
fn parts_of_the_supervisor_use_parts_below_them() -> Checked {
    check(
        "arrows inside supervisor/ lead down the layers of SUPERVISOR in tests/tidy/tables.rs, never back up",
        &rust_below("actors/src/supervisor")?,
        |source| wrong_part_order(source, SUPERVISOR),
    )
}

#[test]
fn every_file_says_what_it_is() -> Checked {
    check(
        "every Rust file begins with `//!`: what it owns, what it must never do",
        &sources(&["rs"])?,
        wrong_header,
    )
}

#[test]
fn modules_have_names() -> Checked {
    let name = concat!("mod", ".rs");
    let mut files = sources(&["rs"])?;
    files.retain(|source| source.path.ends_with(&format!("/{name}")));
    check(
        &format!("{name} is not used; name the file after its module"),
        &files,
        |source| vec![source.path.clone()],
    )
}

#[test]
fn no_forbidden_word_lands() -> Checked {
    check(
        "no marks for later, no ignored tests, no paths of one machine",
        &sources(&["rs", "sh", "toml", "md"])?,
        wrong_words,
    )
}

#[test]
fn no_test_sleeps() -> Checked {
    check(
        "a test waits for a condition with a reason, on the test's clock",
        &sources(&["rs"])?,
        wrong_sleeps,
    )
}

#[test]
fn nothing_unwraps_outside_tests() -> Checked {
    check(
        "return an error that says what to do",
        &sources(&["rs"])?,
        wrong_unwraps,
    )
}

#[test]
fn no_code_is_commented_out() -> Checked {
    check(
        "delete code that is not used; git remembers it",
        &sources(&["rs"])?,
        wrong_comments,
    )
}

#[test]
fn the_changelog_keeps_its_form() -> Checked {
    let text = fs::read_to_string(root().join("CHANGELOG.md"))?;
    verdict(
        &format!("entries stand under one of {SECTIONS:?} of a version; one about a format names its golden file"),
        &wrong_changes(&text),
    )
}

#[test]
fn every_root_of_tests_is_in_one_manifest() -> Checked {
    let mut roots = Vec::new();
    for source in rust_below("tests")? {
        let parts: Vec<&str> = source.path.split('/').collect();
        let is_root = matches!(parts[..], [_, _] | [_, _, "main.rs"]);
        roots.extend(is_root.then_some(source.path));
    }
    let mut manifests = String::new();
    for path in ["Cargo.toml", "src/cli/Cargo.toml"] {
        manifests += &fs::read_to_string(root().join(path))?;
    }
    verdict(
        "a root of tests is a [[test]] of the library, or of the command line if it runs that",
        &wrong_roots(&roots, &manifests),
    )
}

#[test]
fn a_user_of_the_library_compiles_few_packages() -> Checked {
    let compiled = compiled("default")?;
    if compiled.len() > CRATES {
        let names = Vec::from_iter(compiled).join(", ");
        return Err(format!("the library alone takes {CRATES} packages at most, and these are more: {names}").into());
    }
    for program in ["clap", "indicatif", "procession-cli", "tracing-subscriber"] {
        let is_there = compiled
            .iter()
            .any(|package| package.starts_with(&format!("{program} ")));
        assert!(!is_there, "{program} belongs to the command line or to tests");
    }
    Ok(())
}

#[test]
fn every_dependency_builds_with_the_oldest_rust() -> Checked {
    verdict(
        "take an older version of these, or raise rust-version in Cargo.toml, the READMEs and docs/reference/policy.md",
        &too_new()?,
    )
}

#[test]
fn decisions_are_numbered_and_complete() -> Checked {
    let mut decisions = Vec::new();
    for source in sources(&["md"])? {
        if let Some(name) = source.path.strip_prefix("docs/decisions/") {
            decisions.push((name.to_owned(), source.text.clone()));
        }
    }
    verdict(
        "a decision is NNNN-title.md with context, choice and cost",
        &wrong_decisions(&decisions),
    )
}

#[test]
fn the_readme_shows_the_example_that_runs() -> Checked {
    let page = fs::read_to_string(root().join("README.md"))?;
    let example = fs::read_to_string(root().join("examples/hello.rs"))?;
    // The lints of this house ask for that line, and a reader's do not.
    let lines: Vec<&str> = example.lines().filter(|line| !line.starts_with("#![expect(")).collect();
    if shown_file(&page, "src/main.rs").trim_end() != lines.join("\n") {
        return Err("README.md and examples/hello.rs differ; copy the example into the README".into());
    }
    let lines = lines.iter().filter(|line| !line.trim().is_empty()).count();
    if lines > EXAMPLE_LINES {
        return Err(format!("examples/hello.rs has {lines} lines; a newcomer reads {EXAMPLE_LINES}").into());
    }
    Ok(())
}

#[test]
fn links_lead_somewhere() -> Checked {
    verdict(
        "each link of a page leads to a file, and to a heading that is in it",
        &wrong_links(&sources(&["md"])?),
    )
}

#[test]
fn rust_in_the_reference_is_compiled_somewhere() -> Checked {
    let mut pages = sources(&["md"])?;
    pages.retain(|page| page.path.starts_with("docs/reference") || page.path.starts_with("docs/explanation"));
    let mut compiled = rust_below("examples")?;
    compiled.extend(rust_below("src")?);
    verdict(
        "each block of Rust of docs/reference and docs/explanation stands in an example or in a documentation test",
        &loose_blocks(&pages, &compiled),
    )
}

#[test]
fn alerts_are_about_metrics_that_there_are() -> Checked {
    let mut page = fs::read_to_string(root().join("docs/how-to/alert.md"))?;
    for file in ["procession.rules.yml", "procession.rules.test.yml", "board.json"] {
        page += &fs::read_to_string(root().join("docs/how-to/prometheus").join(file))?;
    }
    let telemetry = fs::read_to_string(root().join("actors/src/telemetry/names.rs"))?;
    verdict(
        "docs/how-to/alert.md, or a file of docs/how-to/prometheus, names metrics that actors/src/telemetry/names.rs does not have",
        &wrong_alerts(&page, &telemetry),
    )
}

#[test]
fn the_page_on_the_journal_format_lists_every_field() -> Checked {
    let page = fs::read_to_string(root().join("docs/reference/journal-format.md"))?;
    let mut records = String::new();
    for file in ["row", "row/write", "history", "record", "audit"] {
        records += &fs::read_to_string(root().join(format!("actors/kernel/src/{file}.rs")))?;
    }
    let keys = fs::read_to_string(root().join("actors/src/journal/keys.rs"))?;
    let mut wrong = wrong_format_page(&page, &records, &["Row", "HistoryEntry", "KeyEntry", "AuditEntry"]);
    wrong.extend(wrong_keyspaces(&page, &keys));
    verdict(
        "docs/reference/journal-format.md and the code differ; a field that is on disk is in the page, in its order",
        &wrong,
    )
}

#[test]
fn the_page_on_metrics_lists_every_metric() -> Checked {
    let page = fs::read_to_string(root().join("docs/reference/metrics.md"))?;
    let telemetry = fs::read_to_string(root().join("actors/src/telemetry/names.rs"))?;
    verdict(
        "docs/reference/metrics.md and actors/src/telemetry/names.rs differ; a metric is in both, or in neither",
        &wrong_metrics(&page, &telemetry),
    )
}

#[test]
fn what_is_logged_is_in_the_table() -> Checked {
    let page = fs::read_to_string(root().join("docs/reference/operations.md"))?;
    let mut sources = rust_below("src")?;
    sources.extend(rust_below("actors/src")?);
    verdict(
        "docs/reference/operations.md lists what is logged, each with its level",
        &wrong_log_events(&page, &sources),
    )
}

#[test]
fn every_rule_can_fail() {
    let source = |path: &str, text: &str| Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let bad = |wrong: Vec<String>| assert!(!wrong.is_empty());
    let good = |wrong: Vec<String>| assert_eq!(wrong, Vec::<String>::new());

    let page = |text| [source("docs/a.md", text)];
    good(wrong_links(&page(
        "# A b\n[here](#a-b) [there](https://a) [root](../README.md)\n```\n[x](none)\n```",
    )));
    bad(wrong_links(&page("# A\n[here](#b)")));
    bad(wrong_links(&page("[there](nowhere.md)")));
    let example = [source(
        "src/a.rs",
        "//! ```\n//! let a = 1;\n//!     let b = 2;\n//! ```",
    )];
    good(loose_blocks(&page("```rust\nlet a = 1;\nlet b = 2;\n```"), &example));
    bad(loose_blocks(&page("```rust\nlet a = 1;\nlet c = 2;\n```"), &example));
    good(wrong_alerts("expr: procession_a_total > 0", "(\"procession_a_total\")"));
    bad(wrong_alerts("expr: procession_b > 0", "(\"procession_a\")"));

    good(store_names(&source(
        "actors/src/offline.rs",
        "use crate::journal::EmbeddedStore;",
    )));
    bad(store_names(&source(
        "actors/src/offline.rs",
        "use crate::journal::fjall::SyncMode;",
    )));

    let logs = [source("a.rs", "tracing::warn!(%error, \"it broke\");")];
    good(wrong_log_events("| `it broke` | warn | now | `error` |", &logs));
    bad(wrong_log_events("| `it broke` | info | now | `error` |", &logs));
    bad(wrong_log_events(
        "| `it broke` | warn | now | |\n| `it went` | warn | now | |",
        &logs,
    ));
    bad(wrong_order(
        &source("k/id.rs", "use crate::{id::Seq, kernel};"),
        "k",
        KERNEL,
    ));
    bad(wrong_order(&source("k/unheard.rs", ""), "k", KERNEL));
    bad(wrong_order(
        &source("k/family/tree.rs", "fn f() { crate::decide::now() }"),
        "k",
        KERNEL,
    ));
    good(wrong_order(
        &source("k/kernel.rs", "use crate::id::Seq; // crate::decide"),
        "k",
        KERNEL,
    ));
    let wing = |path: &str, text: &str| wrong_wing(&source(&format!("actors/src/supervisor/{path}"), text), "a", "A");
    good(wing("a.rs", "struct A {\n    field: u8,\n}\n"));
    good(wing("a/tests.rs", "impl Handler<B> for Supervisor {}"));
    good(wing("ab.rs", "impl Supervisor {}"));
    bad(wing("a.rs", "struct A {\n    pub(super) field: u8,\n}\n"));
    bad(wing("a.rs", "struct B {\n    field: u8,\n}\n"));
    bad(wing("a/b.rs", "impl Supervisor {\n}\n"));
    bad(wing("a/b.rs", "fn f(supervisor: &mut Supervisor) {}"));
    let part = |path: &str, text: &str| source(&format!("actors/src/supervisor/{path}"), text);
    good(wrong_supervisor(&part(
        "a/tests.rs",
        "impl Handler<B> for Supervisor {}",
    )));
    good(wrong_supervisor(&source(
        "actors/src/supervisor.rs",
        "impl Supervisor {}",
    )));
    bad(wrong_supervisor(&part("a/b.rs", "impl Handler<B> for Supervisor {}")));
    let layers: &[&[&str]] = &[&["low", "beside"], &["high"]];
    good(wrong_part_order(
        &part("high/a.rs", "use super::super::low::A;"),
        layers,
    ));
    good(wrong_part_order(
        &part("low/a.rs", "use super::high;\nuse super::super::beside::B;"),
        layers,
    ));
    bad(wrong_part_order(
        &part("low.rs", "use super::{beside, high::A};"),
        layers,
    ));
    bad(wrong_part_order(
        &part("low/a.rs", "use super::super::high::A;"),
        layers,
    ));
    bad(wrong_part_order(
        &part("low/a.rs", "use crate::supervisor::high::A;"),
        layers,
    ));
    bad(wrong_part_order(&part("unknown.rs", ""), layers));
    bad(wrong_packages(
        &source("a.rs", "use procession::Executor;"),
        &["procession_kernel"],
    ));
    good(wrong_packages(
        &source("a.rs", "use procession_kernel::Seq;"),
        &["procession_kernel"],
    ));
    bad(wrong_names(
        &source("a.rs", "use std::collections::HashMap;"),
        NOT_IN_KERNEL,
    ));
    good(wrong_names(
        &source("a.rs", "/// Not a HashMap.\nstruct Instantly;"),
        NOT_IN_KERNEL,
    ));
    bad(wrong_header(&source("a.rs", "use std::fmt;")));
    bad(wrong_words(&source("a.md", concat!("TO", "DO: later"))));
    bad(wrong_words(&source("a.rs", concat!("#[ig", "nore]"))));
    bad(wrong_sleeps(&source(
        "tests/a.rs",
        concat!("std::thread::", "sleep(day)"),
    )));
    good(wrong_sleeps(&source(
        "src/a.rs",
        concat!("std::thread::", "sleep(day)"),
    )));
    bad(wrong_words(&source("a.sh", concat!("cd /wo", "rk/x"))));
    bad(wrong_unwraps(&source("src/a.rs", concat!("a.unw", "rap()"))));
    good(wrong_unwraps(&source("tests/a.rs", concat!("a.unw", "rap()"))));
    bad(wrong_comments(&source("a.rs", "// let a = b();")));
    bad(wrong_dependencies(
        "[dependencies]\nserde.workspace = true\ntokio = \"1\"\n[lints]\n",
        &["serde"],
    ));
    bad(wrong_dependencies("[target.'cfg(unix)'.dependencies]\n", &["serde"]));
    good(wrong_dependencies(
        "[dependencies]\nserde.workspace = true\n\n[dev-dependencies]\nproptest = \"1\"\n",
        &["serde"],
    ));
    bad(wrong_names(&source("a.rs", "use std::fs::File;"), NOT_IN_LANGUAGE));
    good(wrong_names(&source("a.rs", "fn is_async() {}"), NOT_IN_LANGUAGE));
    good(wrong_changes("## [0.1.0] - 2026-01-31\n### Added\n- more"));
    bad(wrong_changes("## [Unreleased]\n- something changed"));
    bad(wrong_changes("## [Unreleased]\n### News\n"));
    bad(wrong_changes("## 0.1.0\n"));
    bad(wrong_changes("### Added\n- Format 5 of the journal"));
    let roots = ["tests/a/main.rs".to_owned()];
    good(wrong_roots(&roots, "path = \"../../tests/a/main.rs\""));
    bad(wrong_roots(&roots, "path = \"tests/b/main.rs\""));
    bad(wrong_roots(
        &roots,
        "path = \"tests/a/main.rs\"\npath = \"tests/a/main.rs\"",
    ));
    bad(wrong_decisions(&[(
        "0002-late.md".to_owned(),
        "## Context\n## Choice\n## Cost".to_owned(),
    )]));
    bad(wrong_decisions(&[(
        "0001-short.md".to_owned(),
        "## Context".to_owned(),
    )]));
    let graph = |needed: &str, kind: Option<&str>| {
        serde_json::json!({
            "workspace_members": ["own"],
            "packages": [{ "id": "own", "rust_version": "1.91" }, { "id": "other", "rust_version": needed }],
            "resolve": { "nodes": [
                { "id": "own", "deps": [{ "pkg": "other", "dep_kinds": [{ "kind": kind }] }] },
                { "id": "other", "deps": [] },
            ] },
        })
    };
    good(wrong_rust_versions(&graph("1.91.0", None)));
    good(wrong_rust_versions(&graph("1.92", Some("dev"))));
    bad(wrong_rust_versions(&graph("1.91.1", None)));
    bad(wrong_rust_versions(&graph("1.100", Some("build"))));
    let records = "pub struct Row {\n    #[serde(rename = \"q\")]\n    pub revision: Seq,\n}\n";
    bad(wrong_format_page("| `q` | `number` | |", records, &["Row"]));
    bad(wrong_format_page(
        "| `q` | `revision` | |\n| `r` | `more` | |",
        records,
        &["Row"],
    ));
    let table = "impl Serialize for Row {\n    \"q\" row.revision,\n    \"p\" rare.parent unless Option::is_none,\n}\n";
    good(wrong_format_page(
        "| `q` | `revision` | |\n| `p` | `parent` | |",
        table,
        &["Row"],
    ));
    bad(wrong_format_page(
        "| `p` | `parent` | |\n| `q` | `revision` | |",
        table,
        &["Row"],
    ));
    good(wrong_format_page(
        "| `q` | `revision`: which | |\n| `meta` | name | |",
        records,
        &["Row"],
    ));
    bad(wrong_keyspaces(
        "",
        "pub fn name(&self) {\n  Self::Meta => \"meta\".to_owned(),\n    }",
    ));
    let (page, telemetry) = (
        "| `procession_a_total` | counter |",
        "X, \"procession_a_total\", Counter",
    );
    bad(wrong_metrics(page, ""));
    bad(wrong_metrics("", telemetry));
    bad(wrong_metrics(page, &format!("{telemetry}\n{telemetry}")));
    good(wrong_metrics(page, telemetry));
    let page = "```rust title=\"a.rs\"\nfn a() {}\n```\ntext\n```rust title=\"a.rs\"\nfn b() {}\n```\n";
    assert_eq!(shown_file(page, "a.rs"), "fn a() {}\n\nfn b() {}\n");
}

/// The fuzzer's binaries alone are another's macro.
#[test]
fn unsafe_is_forbidden_in_every_package() -> Checked {
    let mut wrong = Vec::new();
    let packages = [
        "actors/Cargo.toml",
        "actors/kernel/Cargo.toml",
        "src/cli/Cargo.toml",
        "src/page/Cargo.toml",
        "src/saga/language/Cargo.toml",
    ];
    let packages = packages.map(|path| (path, "[lints]\nworkspace = true"));
    let others = [
        "Cargo.toml",
        "tests/api/Cargo.toml",
        "tests/loom/Cargo.toml",
        "benches/peers/Cargo.toml",
    ];
    let others = others.map(|path| (path, "unsafe_code = \"forbid\""));
    let own = [("Cargo.toml", "[lints]\nworkspace = true")];
    for (path, text) in packages.into_iter().chain(others).chain(own) {
        let is_there = fs::read_to_string(root().join(path))?.contains(text);
        wrong.extend((!is_there).then(|| path.to_owned()));
    }
    verdict("these packages do not forbid unsafe code", &wrong)
}
