# For tools/test and .ci/run: named, timed sections that all run; the closing table says how each went.
# shellcheck shell=bash
section_rows=()
section_failed=0
beside_names=()
beside_pids=()
beside_logs=$(mktemp -d)
trap 'rm -rf "$beside_logs"' EXIT

# section_ended NAME SECONDS STATUS: the section's row.
section_ended() {
    local verdict=passed
    if [ "$3" -ne 0 ]; then
        verdict=FAILED
        section_failed=1
    fi
    section_rows+=("$(printf '%-8s %5d s  %s' "$verdict" "$2" "$1")")
}

# section NAME COMMAND…: runs the command, notes its seconds and whether it passed.
section() {
    local name=$1 start=$SECONDS status=0
    shift
    printf '\n==== %s\n' "$name"
    "$@" || status=$?
    section_ended "$name" $((SECONDS - start)) $status
}

# beside NAME COMMAND…: a section that runs while the next ones do; beside_end waits for all of them and shows what they said.
beside() {
    local name=$1 log=$beside_logs/${#beside_pids[@]}
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
        cat "$beside_logs/$i"
        read -r seconds status <"$beside_logs/$i.ended" || { seconds=0 status=1; }
        section_ended "${beside_names[i]}" "$seconds" "$status"
    done
    beside_names=() beside_pids=()
}

# Prints the table; the script's exit status is its own.
section_end() {
    printf '\n==== %s: %d s\n' "$1" "$SECONDS"
    printf '%s\n' "${section_rows[@]}"
    return $section_failed
}
