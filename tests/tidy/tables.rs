//! What the house rules go by: layers, names, limits. Adjust these when the
//! code grows.

/// Layers of the kernel. A module may use its own layer and those before it.
pub(crate) const KERNEL: &[&[&str]] = &[
    &["id", "list", "seldom"],
    &["limit", "rate_window", "rates"],
    &["lifecycle", "lock", "cause", "history", "fingerprint", "label"],
    &["needs"],
    &["wait"],
    &["verb"],
    &["row", "audit", "waiters"],
    &["failure"],
    &["event", "record", "effect", "decision", "plan"],
    &["latch", "retry", "admission", "waits"],
    &["family"],
    &["families"],
    &["spare", "kernel", "kind_index"],
    &["decide", "evolve", "outstanding"],
    &["view", "explain", "verdict", "invariant"],
    &["damage"],
    &["intake"],
];

/// Layers of the actors.
pub(crate) const ACTORS: &[&[&str]] = &[
    &[
        "actor_loop",
        "error",
        "clock",
        "guard",
        "queues",
        "sync",
        "time_limit",
        "telemetry",
        "threads",
    ],
    &["journal"],
    &[
        "procedure",
        "accepts",
        "child",
        "step",
        "stage_error",
        "signal",
        "submit",
        "submission_key",
        "context",
        "upgrade",
        "view",
        "charts",
        "export",
        "hooks",
        "fault_injection",
        "thresholds",
        "kind_settings",
        "value",
    ],
    &["messages", "registry", "limiter", "worker", "read"],
    &["procedure_actor"],
    &["worker_inbox", "heartbeats"],
    &["supervisor", "engine"],
    &["offline"],
    &["testkit"],
];

/// Wings of the supervisor that are cut, each with its struct. A wing owns its fields: nothing in its files can see
/// the supervisor, and nothing outside can see its struct's fields. The list grows until every wing stands here.
pub(crate) const WINGS: &[(&str, &str)] = &[
    ("admission", "Admission"),
    ("dispatch", "Dispatch"),
    ("health", "Health"),
    ("lifecycle", "Lifecycle"),
    ("metrics", "Metrics"),
    ("pipeline", "Pipeline"),
    ("requests", "Requests"),
];

/// Layers inside the supervisor: what is shared, what is counted, the road to the journal, and above it the wings that
/// stand side by side. A part may use its own layer and those before it.
pub(crate) const SUPERVISOR: &[&[&str]] = &[
    &["failure"],
    &["status", "quarantine"],
    &["metrics"],
    &["pipeline"],
    &["admission", "dispatch", "requests"],
    &["lifecycle"],
    &["health"],
    &["reveal"],
];

/// Layers of the facade.
pub(crate) const FACADE: &[&[&str]] = &[
    &["handle", "executor", "bulk", "history", "provider"],
    &["flow", "noop", "saga", "schedule", "sequence", "definition"],
    &[
        "errors",
        "health",
        "limits",
        "offline",
        "operate",
        "procedure",
        "status",
        "store",
        "submit",
    ],
    &["views"],
    &["filter"],
    &["dashboard", "testkit"],
];

/// Layers of the language of sagas: texts, definitions, and what is made of them.
pub(crate) const LANGUAGE: &[&[&str]] = &[
    &["digest", "expression"],
    &["definition"],
    &["draw", "source"],
    &["definitions"],
];

/// Layers of the command line. Its parts name each other from where they stand; the demo is under all of them.
pub(crate) const PROGRAM: &[&[&str]] = &[
    &["demo"],
    &["account", "exit", "named", "moment", "print", "signals"],
    &["login", "manual", "nearest", "pager", "scratch", "tips"],
    &[
        "act", "bench", "document", "fields", "import", "kinds", "look", "place", "saga", "site", "source", "tail",
        "watch",
    ],
    &["main"],
];

/// Folders of the packages, and the names of packages that each may write.
pub(crate) const PACKAGES: &[(&str, &[&str])] = &[
    ("actors/kernel/src", &[]),
    ("actors/src", &["procession_kernel"]),
    (
        "src",
        &[
            "procession_actors",
            "procession_kernel",
            "procession_page",
            "procession_saga_language",
        ],
    ),
    ("src/cli", &["procession", "procession_cli"]),
    ("src/page", &[]),
    ("src/saga/language", &[]),
];

/// Folders with a manifest of their own inside a folder of another package.
pub(crate) const NESTED: &[&str] = &["src/cli", "src/page", "src/saga/language"];

/// Packages that a program outside the workspace compiles with the library and no feature, at most.
pub(crate) const CRATES: usize = 89;

/// Names that only the files and folders given may write, below the folder given.
pub(crate) const ONLY_IN: &[(&str, &str, &[&str])] = &[
    (
        "fjall",
        "actors/src",
        &["actors/src/journal/fjall.rs", "actors/src/journal/fjall/"],
    ),
    (
        "lsm_tree",
        "actors/src",
        &["actors/src/journal/fjall.rs", "actors/src/journal/fjall/"],
    ),
    (
        "sfa",
        "actors/src",
        &["actors/src/journal/fjall.rs", "actors/src/journal/fjall/"],
    ),
    ("rmp_serde", "actors/src", &["actors/src/journal/codec.rs"]),
    (
        "metrics",
        "actors/src",
        &["actors/src/telemetry.rs", "actors/src/telemetry/"],
    ),
    ("fjall", "src", &[]),
    ("rmp_serde", "src", &[]),
    ("metrics", "src", &[]),
];

/// Parts of a store that only the files and folders given may write: everybody else goes through `journal`.
pub(crate) const STORE_NAMES: &[&str] = &["journal::fjall", "FjallStore", "journal::recent", "open_plain"];

/// Names that the kernel never writes: it is arithmetic.
pub(crate) const NOT_IN_KERNEL: &[&str] = &[
    "actix",
    "actix_rt",
    "tokio",
    "futures",
    "fjall",
    "async",
    "await",
    "fs",
    "net",
    "thread",
    "env",
    "Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
    "Mutex",
    "RwLock",
];

/// Names that the language of sagas never writes: it reads definitions and evaluates, and nothing happens in it.
pub(crate) const NOT_IN_LANGUAGE: &[&str] = &[
    "actix",
    "actix_rt",
    "tokio",
    "futures",
    "tracing",
    "async",
    "await",
    "net",
    "thread",
    "env",
    "fs",
    "Instant",
    "SystemTime",
    "Mutex",
    "RwLock",
];

/// The one file of the language that opens files: definitions, up to their bound.
pub(crate) const READS_DEFINITIONS: &str = "src/saga/language/definition/files.rs";

/// Packages that the language of sagas depends on, all of them without I/O.
pub(crate) const NEEDED_BY_LANGUAGE: &[&str] = &["petgraph", "serde", "serde_json", "sha2", "strsim", "thiserror"];

/// Files without `unwrap`'s ban: where tests live.
pub(crate) const TEST_FOLDERS: &[&str] = &["tests/", "benches/", "actors/tests/", "actors/kernel/tests/"];

/// Sections of a version in the changelog.
pub(crate) const SECTIONS: &[&str] = &["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// Headings of a decision.
pub(crate) const HEADINGS: &[&str] = &["## Context", "## Choice", "## Cost"];

/// Lines of the README's example, at most.
pub(crate) const EXAMPLE_LINES: usize = 60;
