#!/usr/bin/env bash
# Installs what the tests need, and passes them all: format, clippy, tests, doc
# tests, rustdoc, public API, examples, packages, and the demo, run once and then killed three times.
#
# One command, no input. Root is needed only where a C linker, valgrind, node or chromium is missing.
# Every step says its name and how long it took; a step that fails ends the run.
# What is only checked runs beside what is built and tested, in a target directory of its own: clippy, rustdoc and the
# packages share checked dependencies, and tests and the demo share built ones. Examples are built with the tests, each
# with its own tests or as it is, and checked by clippy. Once the tests are compiled,
# the journeys in the browser run beside them, because they wait most of the time, and so do the memory check and the
# demo, each of which leaves a processor idle.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}"
# Every build here is whole: incremental state would cost time and space, and serve nobody.
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"
# Nor would line tables: a test that fails names its line without them. Building and running take a seventh less.
export CARGO_PROFILE_DEV_DEBUG="${CARGO_PROFILE_DEV_DEBUG:-none}"
# Fewer units of each crate: a tenth less of the processors' time, which is what a whole build waits for on two of them.
export CARGO_PROFILE_DEV_CODEGEN_UNITS="${CARGO_PROFILE_DEV_CODEGEN_UNITS:-4}"
# Many tests panic on purpose, thousands of times in the simulation, and a trace without lines says little.
export RUST_BACKTRACE=0

whole_begin=$SECONDS

say() {
    printf '== %s\n' "$*"
}

give_up() {
    printf '== FAILED: %s\n' "$*" >&2
    exit 1
}

# step NAME COMMAND...: runs the command, and ends the run with the name if it fails.
step() {
    local name=$1 begin=$SECONDS status=0
    shift
    say "$name"
    "$@" || status=$?
    if ((status != 0)); then
        give_up "$name (exit status $status, after $((SECONDS - begin)) s)"
    fi
    say "$name: passed in $((SECONDS - begin)) s"
}

find_cargo() {
    if ! command -v cargo >/dev/null && [[ -f "${CARGO_HOME:-$HOME/.cargo}/env" ]]; then
        # shellcheck disable=SC1091
        source "${CARGO_HOME:-$HOME/.cargo}/env"
    fi
    if ! command -v cargo >/dev/null && [[ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]]; then
        export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    fi
    command -v cargo >/dev/null || {
        echo "cargo was not found: install Rust with rustup, then run this again" >&2
        return 1
    }
    local component missing=()
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 || missing+=("$component")
    done
    if ((${#missing[@]} > 0)); then
        echo "cargo has no ${missing[*]}: run 'rustup component add rustfmt clippy', then run this again" >&2
        return 1
    fi
    rustc --version
    cargo --version
}

# Rust links with the C compiler, and the binary's allocator is built with it; the
# memory check is valgrind's; the dashboard's page is tried in a browser that node drives.
# All else that the tests need comes with cargo and npm.
find_tools() {
    local missing=()
    command -v cc >/dev/null || missing+=(gcc libc6-dev)
    command -v valgrind >/dev/null || missing+=(valgrind)
    command -v node >/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null ||
        missing+=(chromium-headless-shell)
    if ((${#missing[@]} == 0)); then
        return
    fi
    local as_root=()
    if ((EUID != 0)); then
        as_root=(sudo -n)
    fi
    if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
        echo "missing: ${missing[*]}; install these (on Debian: apt-get install ${missing[*]}), then run this again" >&2
        return 1
    fi
    "${as_root[@]}" apt-get update -q &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# Prometheus's own tool, which tries alert rules: out of Debian's package, since its server is not wanted.
find_promtool() {
    if command -v promtool; then
        return
    fi
    local place
    place="$(target_directory)/promtool" || return
    if [[ ! -x $place/usr/bin/promtool ]]; then
        mkdir -p "$place" || return
        if ! (cd "$place" && apt-get download -q prometheus); then
            local as_root=()
            ((EUID == 0)) || as_root=(sudo -n)
            "${as_root[@]}" apt-get update -q || return
            (cd "$place" && apt-get download -q prometheus) || return
        fi
        dpkg-deb -x "$place"/prometheus_*.deb "$place" || return
    fi
    printf '%s\n' "$place/usr/bin/promtool"
}

# The alerts, each with made-up series, and every expression of the board.
check_alerts() {
    local promtool board
    promtool=$(find_promtool | tail -n 1) || return
    board=$(mktemp --suffix .yml) || return
    node -e '
        const { panels } = JSON.parse(require("fs").readFileSync("docs/how-to/prometheus/board.json", "utf8"));
        const expressions = panels.flatMap((panel) => (panel.targets ?? []).map((target) => target.expr));
        const rules = expressions.map((expr, number) => ({
            record: `board:${number}`,
            expr: expr.replaceAll("$kind", ".*"),
        }));
        console.log(JSON.stringify({ groups: [{ name: "board", rules }] }));
    ' >"$board" || return
    "$promtool" check rules "$board" docs/how-to/prometheus/procession.rules.yml &&
        "$promtool" test rules docs/how-to/prometheus/procession.rules.test.yml || return
    rm -f "$board"
}

# What drives the browser, the compiler that checks the types of the page's scripts, and what bundles these.
find_packages() {
    (cd tests/browser && npm ci --no-audit --no-fund && npm run --silent types && npm run --silent bundle -- --check)
}

# Rows of steps that run beside the others: the process of each, and where it prints.
declare -A rows logs
# The directory of the tests in memory, if there is one.
memory=""

# begin NAME COMMAND...: begins a row.
begin() {
    local name=$1
    shift
    logs[$name]=$(mktemp)
    # A process group of its own, so that all of it can be ended.
    set -m
    "$@" >"${logs[$name]}" 2>&1 &
    set +m
    rows[$name]=$!
}

# end NAME: waits for a row that has not ended before, and shows what it printed.
end() {
    local name=$1 status=0
    if [[ -z ${rows[$name]-} ]]; then
        return
    fi
    wait "${rows[$name]}" || status=$?
    cat "${logs[$name]}"
    rm -f "${logs[$name]}"
    unset "rows[$name]" "logs[$name]"
    if ((status != 0)); then
        exit 1
    fi
}

# look_at NAME: ends the run now if a row has failed already.
look_at() {
    kill -0 "${rows[$1]-}" 2>/dev/null || end "$1"
}

end_all() {
    local name
    for name in "${!rows[@]}"; do
        kill -- "-${rows[$name]}" 2>/dev/null || true
        rm -f "${logs[$name]}"
    done
    if [[ -n $memory ]]; then
        rm -rf "$memory"
    fi
}
trap end_all EXIT

# The journals of tests go to memory where the system has a few gigabytes for it: they sync each commit, and what a test
# shows of a disk it shows on a file system of its own.
work_in_memory() {
    local room=0
    if [[ -z ${TMPDIR-} && -w /dev/shm ]]; then
        room=$(df --output=avail -k /dev/shm | tail -n 1)
    fi
    if ((room >= 4 * 1024 * 1024)); then
        memory=$(mktemp -d /dev/shm/procession.XXXXXX)
        export TMPDIR=$memory
    fi
}

document() {
    CARGO_TARGET_DIR="$(checked_directory)" RUSTDOCFLAGS="-D warnings" \
        cargo doc --locked --workspace --no-deps --all-features
}

# The unit tests that read and write real files, and those of what threads share, under
# valgrind: no read of what was not written, none of what was given back.
check_memory() {
    local host runner
    host=$(rustc -vV | sed -n 's/^host: //p') || return
    runner="CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$host")_RUNNER"
    env "$runner=valgrind --quiet --error-exitcode=9" \
        timeout --verbose 10m cargo test --locked --workspace --all-features --lib -- \
        worker:: memory:: codec an_append a_log_shorter a_missing_table a_torn_tail_is
}

# Where the row of checks works.
checked_directory() {
    printf '%s/checked\n' "$(target_directory)"
}

target_directory() {
    cargo metadata --locked --no-deps --format-version 1 |
        sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
}

# Nobody builds these here but the one that explores, so nothing else would see that they have fallen behind.
check_locks() {
    local package
    for package in tests/api tests/fuzz tests/loom benches/peers; do
        cargo update --quiet --workspace --locked --manifest-path "$package/Cargo.toml" || return
    done
}

# What a release publishes: packed, small, and sound from nothing but what was packed. A workspace of the unpacked
# packages with the profiles of this one shares what clippy has checked, where Cargo's own verification would build all
# dependencies anew. It also checks the library with no feature and with one, as users build it.
check_packages() {
    local target place said name size
    target=$(checked_directory) || return
    place="$target/package"
    rm -rf "$place"
    said=$(CARGO_TARGET_DIR="$target" cargo package --workspace --locked --allow-dirty --no-verify 2>&1) || {
        printf '%s\n' "$said"
        return 1
    }
    if grep '^warning' <<<"$said" | grep -v '^warning: ignoring \(test\|benchmark\|example\) '; then
        echo "packing warns of that" >&2
        return 1
    fi
    mkdir "$place/unpacked" || return
    for name in procession procession-actors procession-cli procession-kernel procession-page procession-saga-language; do
        size=$(gzip -dc "$place/$name"-[0-9]*.crate | wc -c) || return
        # The command line brings the rows of its demo.
        if ((size > 2000000)) && [[ $name != procession-cli ]]; then
            echo "$name has $size bytes unpacked, of 2,000,000" >&2
            return 1
        fi
        mkdir "$place/unpacked/$name" || return
        # Packed files have one time, whatever is in them. Cargo would take what it has built of an earlier pack for theirs.
        tar -xzmf "$place/$name"-[0-9]*.crate -C "$place/unpacked/$name" --strip-components=1 || return
    done
    if find "$place/unpacked/procession" | grep '/src/cli\|/src/page\|/src/saga/language\|/demo\|/tests/\|/tests\.rs'; then
        echo "the library brings what belongs to the command line or to tests" >&2
        return 1
    fi
    {
        printf '[workspace]\nresolver = "3"\nmembers = ["procession*"]\n\n[patch.crates-io]\n'
        for name in procession procession-actors procession-kernel procession-page procession-saga-language; do
            printf '%s = { path = "%s" }\n' "$name" "$name"
        done
        sed -n '/^\[profile\./,$p' Cargo.toml
    } >"$place/unpacked/Cargo.toml"
    cp Cargo.lock "$place/unpacked/" || return
    for said in "-p procession" "-p procession --features testkit" "-p procession-cli"; do
        # shellcheck disable=SC2086
        (cd "$place/unpacked" && CARGO_TARGET_DIR="$target" cargo check --quiet --offline $said) || return
    done
}

# What the packages make public, against the lists in the repository: a package of its own, which says how to accept
# a change.
compare_api() {
    CARGO_TARGET_DIR="$(checked_directory)" cargo run --quiet --locked --manifest-path tests/api/Cargo.toml
}

# What threads share, in every order: a package of its own, built on loom.
explore() {
    CARGO_TARGET_DIR="$(target_directory)/loom" cargo run --quiet --locked --manifest-path tests/loom/Cargo.toml
}

# The program that the tests built, with assertions and overflow checks. A build for release would take a fifth of the
# whole run, and find nothing more.
run_demo() {
    local data status=0
    data=$(mktemp -d) || return
    "$(target_directory)/debug/procession" demo --data "$data/demo" || status=$?
    rm -rf "$data"
    return "$status"
}

kill_demo() {
    BINARY="$(target_directory)/debug/procession" ./tests/kills.sh 3
}

# All that needs no built test.
check_everything() {
    # The tests go first: this fills what they leave idle.
    renice -n 10 -p "$BASHPID" >/dev/null
    step "clippy, warnings as errors" env CARGO_TARGET_DIR="$(checked_directory)" \
        cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
    step "rustdoc, warnings as errors" document
    step "alerts and the board for Grafana: as Prometheus reads them" check_alerts
    step "public API: as docs/internals/api lists it" compare_api
    step "packages: packed as a release publishes them, and checked" check_packages
    step "what threads share, in every order" explore
}

# A browser that is missing is a failure here, and elsewhere a reason to skip the journeys.
make_journeys() {
    step "the page in a browser" env PROCESSION_BROWSER=required timeout --verbose 20m \
        cargo test --locked --workspace --all-features --test browser
}

# What needs the built tests and keeps one processor busy at most. It gives way to the browser as the tests do.
use_built() {
    renice -n 5 -p "$BASHPID" >/dev/null
    step "memory check" check_memory
    step "demo: run once" run_demo
    step "demo: killed three times, then verified" kill_demo
}

step "cargo, rustfmt and clippy are there" find_cargo
step "a linker, valgrind, node and a browser are there" find_tools
work_in_memory
step "format" cargo fmt --all --check
step "lock files of the packages outside the workspace: up to date" check_locks
begin checks check_everything
step "the page's scripts: their packages, their types, their bundle" find_packages
step "tests: they compile" cargo test --locked --workspace --all-features --no-run
look_at checks
begin journeys make_journeys
begin built use_built
# A test that hangs is a failure, not a reason to wait: a whole run takes minutes. A browser that is starved fails a
# journey, so the tests give way to it.
step "tests: unit, integration, documentation" \
    env PROCESSION_BROWSER=later nice -n 5 timeout --verbose 40m cargo test --locked --workspace --all-features
end journeys
end built
end checks
say "everything passed in $((SECONDS - whole_begin)) s"
