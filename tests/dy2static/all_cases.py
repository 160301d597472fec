"""Every case, by file."""
import cases_branches
import cases_code
import cases_loops

CASES = [*cases_branches.CASES, *cases_loops.CASES, *cases_code.CASES]
