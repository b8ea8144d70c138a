#!/usr/bin/env bash
# Kills the demo N times (20 unless given) with kill -9 at random instants over one
# workload, lets it end, and compares what it left with a run that nobody killed.
# KILLS_SEED chooses the instants and the workload; BINARY the program.
set -euo pipefail
cd "$(dirname "$0")/.."

kills=${1:-20}
seed=${KILLS_SEED:-1}
binary=${BINARY:-}
if [ -z "$binary" ]; then
    cargo build --release --quiet --bin procession
    binary=${CARGO_TARGET_DIR:-target}/release/procession
fi
# Each run does some tens of operations before it is killed.
operations=$((kills * 150 + 1000))
sizes="--seed $seed --tables 12 --operations $operations --fail-rate 0.1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=$seed

rows() {
    "$binary" demo --data "$1" --dump >"$work/dump"
    python3 - "$work/dump" <<'PYTHON'
import json, sys
tables = {}
for line in open(sys.argv[1]):
    tablet = json.loads(line)
    tables.setdefault(tablet["table"], []).append((tablet["start"], tablet["path"]))
for name in sorted(tables):
    for _, path in sorted(tables[name]):
        for row in open(path):
            print(name, row, end="")
PYTHON
}

fail() {
    echo "$1" >&2
    trap - EXIT
    echo "the data is kept in $work" >&2
    exit 1
}

done_kills=0
resumed=0
while [ "$done_kills" -lt "$kills" ]; do
    "$binary" demo --data "$work/killed" $sizes --json >"$work/out" 2>"$work/err" &
    child=$!
    # A random instant, not a wait for anything: in recovery, in the catching up, or in new work.
    sleep "0.$(printf '%03d' $((RANDOM % 350)))"
    if kill -9 "$child" 2>/dev/null; then
        wait "$child" 2>/dev/null && fail "it ended after $done_kills kills: raise the number of operations" || status=$?
        [ "$status" -eq 137 ] || fail "it ended with $status after $done_kills kills: $(cat "$work/err")"
        done_kills=$((done_kills + 1))
        line=$(grep -o 'resumed [0-9]*' "$work/err" || echo 'resumed 0')
        resumed=$((resumed + ${line#resumed }))
    else
        wait "$child" && fail "it ended after $done_kills kills: raise the number of operations" || fail "it failed: $(cat "$work/err")"
    fi
done

"$binary" demo --data "$work/killed" $sizes --json >"$work/out" 2>"$work/err" || fail "it did not verify: $(tail -5 "$work/err")"
cat "$work/out"
"$binary" demo --data "$work/calm" $sizes --json >/dev/null 2>"$work/err" || fail "the run without kills failed: $(cat "$work/err")"
rows "$work/killed" >"$work/rows-killed"
rows "$work/calm" >"$work/rows-calm"
cmp "$work/rows-killed" "$work/rows-calm" || fail "the tables differ from those of a run without kills"
echo "$kills kills, verified ($resumed procedures resumed)"
