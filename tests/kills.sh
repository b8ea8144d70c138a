#!/usr/bin/env bash
# Kills the tablet master of the demo N times (20 unless given) with kill -9 at random instants over one
# workload, lets it end, and compares what it left with a run that nobody killed.
# KILLS_SEED chooses the instants and the workload, KILLS_FAIL_RATE the share of the
# operations that meet a fault; BINARY the program.
set -euo pipefail
cd "$(dirname "$0")/.."

kills=${1:-20}
seed=${KILLS_SEED:-1}
fail_rate=${KILLS_FAIL_RATE:-0.1}
binary=${BINARY:-}
if [ -z "$binary" ]; then
    cargo build --release --quiet --bin procession
    binary=${CARGO_TARGET_DIR:-target}/release/procession
fi
# More than a run gets done before it is killed, so that the workload outlasts the kills.
operations=$((kills * 80 + 1000))
sizes="--seed $seed --tables 12 --operations $operations --fail-rate $fail_rate"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/said"
RANDOM=$seed

fail() {
    echo "$1" >&2
    trap - EXIT
    echo "the data is kept in $work" >&2
    exit 1
}

# All rows, in order, each with the name of its table.
rows() {
    "$binary" demo tablets --data "$1" --dump | sed -E 's/.*"table":"([^"]*)".*"path":"([^"]*)".*/\1 \2/' |
        while read -r table path; do sed "s/^/$table /" "$path"; done
}

# A random instant below so many milliseconds; not a wait for anything.
instant() {
    sleep "0.$(printf '%03d' $((RANDOM % $1)))"
}

resumed=0
for ((kill = 1; kill <= kills; kill++)); do
    # shellcheck disable=SC2086
    "$binary" demo tablets --data "$work/killed" $sizes --json >"$work/out" 2>"$work/said" &
    child=$!
    exec 3<"$work/said"
    if ((RANDOM % 4 == 0)); then
        instant 300 # in the start, the recovery, or soon after
    else
        while read -r -u 3 line; do
            case $line in
            resumed*)
                count=${line#resumed }
                resumed=$((resumed + ${count%% *}))
                break
                ;;
            esac
        done
        instant 150 # in the work
    fi
    kill -9 "$child" 2>/dev/null || true
    status=0
    wait "$child" 2>/dev/null || status=$?
    [ "$status" -eq 137 ] || fail "run $kill ended by itself with status $status: $(cat <&3)"
    exec 3<&-
done

# shellcheck disable=SC2086
"$binary" demo tablets --data "$work/killed" $sizes --json >"$work/out" 2>"$work/err" || fail "it did not verify: $(tail -5 "$work/err")"
cat "$work/out"
# shellcheck disable=SC2086
"$binary" demo tablets --data "$work/calm" $sizes --json >/dev/null 2>"$work/err" || fail "the run without kills failed: $(tail -5 "$work/err")"
rows "$work/killed" >"$work/rows-killed"
rows "$work/calm" >"$work/rows-calm"
cmp "$work/rows-killed" "$work/rows-calm" || fail "the rows differ from those of a run without kills"
echo "$kills kills, verified ($resumed procedures were seen to be resumed, $(wc -l <"$work/rows-calm") rows compared)"
