"""Every case, by file."""
import cases_branches
import cases_code
import cases_adversarial
import cases_loops
import cases_numbers
import cases_open
import cases_state

CASES = [*cases_branches.CASES, *cases_loops.CASES, *cases_code.CASES, *cases_adversarial.CASES, *cases_numbers.CASES,
         *cases_open.CASES, *cases_state.CASES]
