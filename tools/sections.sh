# For tools/test and .ci/run, which set pipefail: named, timed sections that all run; the closing table says how each went.
# shellcheck shell=bash
section_rows=()
section_failed=0
section_failures=()
beside_names=()
beside_pids=()
section_logs=$(mktemp -d)
trap 'rm -rf "$section_logs"' EXIT

# section_ended NAME SECONDS STATUS LOG: the section's row, and its last lines if it failed.
section_ended() {
    local verdict=passed
    if [ "$3" -ne 0 ]; then
        verdict=FAILED
        section_failed=1
        section_failures+=("$(printf '==== %s failed; its last lines:\n' "$1" && tail -n 20 "$4")")
    fi
    section_rows+=("$(printf '%-8s %5d s  %s' "$verdict" "$2" "$1")")
}

# section NAME COMMAND…: runs the command, notes its seconds and whether it passed.
section() {
    local name=$1 start=$SECONDS status=0 log=$section_logs/now
    shift
    printf '\n==== %s\n' "$name"
    "$@" 2>&1 | tee "$log" || status=$?
    section_ended "$name" $((SECONDS - start)) $status "$log"
}

# beside NAME COMMAND…: a section that runs while the next ones do; beside_end waits for all of them and shows what they said.
beside() {
    local name=$1 log=$section_logs/${#beside_pids[@]}
    shift
    (
        start=$SECONDS status=0
        "$@" >"$log" 2>&1 || status=$?
        echo $((SECONDS - start)) $status >"$log.ended"
    ) &
    beside_pids+=($!)
    beside_names+=("$name")
}

beside_end() {
    local i seconds status
    for i in "${!beside_pids[@]}"; do
        wait "${beside_pids[i]}"
        printf '\n==== %s\n' "${beside_names[i]}"
        cat "$section_logs/$i"
        read -r seconds status <"$section_logs/$i.ended" || { seconds=0 status=1; }
        section_ended "${beside_names[i]}" "$seconds" "$status" "$section_logs/$i"
    done
    beside_names=() beside_pids=()
}

# Prints the table, then what the failed sections said last, so that the end of a long log tells why; the script's exit status is
# the table's.
section_end() {
    printf '\n==== %s: %d s\n' "$1" "$SECONDS"
    printf '%s\n' "${section_rows[@]}"
    if [ $section_failed -ne 0 ]; then
        printf '\n%s\n' "${section_failures[@]}"
    fi
    return $section_failed
}
