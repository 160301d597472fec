# For tools/test and .ci/run: named, timed sections that all run; the closing table says how each went.
# shellcheck shell=bash
section_rows=()
section_failed=0

# section NAME COMMAND…: runs the command, notes its seconds and whether it passed.
section() {
    local name=$1 start=$SECONDS verdict=passed
    shift
    printf '\n==== %s\n' "$name"
    if ! "$@"; then
        verdict=FAILED
        section_failed=1
    fi
    section_rows+=("$(printf '%-8s %5d s  %s' "$verdict" $((SECONDS - start)) "$name")")
}

# Prints the table; the script's exit status is its own.
section_end() {
    printf '\n==== %s: %d s\n' "$1" "$SECONDS"
    printf '%s\n' "${section_rows[@]}"
    return $section_failed
}
