"""Detects rounds disturbed by other work on the machine: two plain C loops (`limits probe`) are timed before,
between and after a round's processes. Only their speed, not the measurements, decides whether a round counts.
Standard library only."""
import json
import statistics
import subprocess

ENOUGH = 0.7  # of the loops' usual speed, on average: a shared machine swings by a fifth from one probe to the next


class Quiet:
    def __init__(self, command, env):
        self.command, self.env = command, env
        self.probes = []  # figures of every probe of the run, in order
        self.rounds = self.disturbed = self.counted = 0

    def probe(self):
        done = subprocess.run(self.command, env=self.env, text=True, capture_output=True, check=True)
        self.probes.append(json.loads(done.stdout))
        return self.probes[-1]

    def usual(self, key):
        """Usual speed of a loop: a good tenth of the run reaches it."""
        return sorted(p[key] for p in self.probes)[int(0.9 * (len(self.probes) - 1))]

    def score(self, probes):
        """Share of their usual speed that the loops had, on average."""
        usual = {key: self.usual(key) for key in probes[0]} if probes else {}
        return statistics.mean(min(1, p[key] / usual[key]) for p in probes for key in p) if probes else 1

    def enough(self, tries, rounds):
        return sum(self.score(probes) >= ENOUGH for _, probes in tries) >= rounds

    def quietest(self, tries, rounds):
        """So many of a unit's rounds, in the order in which they ran."""
        best = sorted(range(len(tries)), key=lambda i: -self.score(tries[i][1]))[:rounds]
        self.rounds, self.counted = self.rounds + len(tries), self.counted + len(best)
        self.disturbed += sum(self.score(tries[i][1]) < ENOUGH for i in best)
        return [tries[i] for i in sorted(best)]

    def text(self):
        """For the page: what was left out, and what could not be."""
        return (f"Rounds of a unit count by how undisturbed the machine's own loops were around them: {self.counted} of "
                f"{self.rounds}, of which {self.disturbed} with the loops below {ENOUGH} of their speed.") if self.probes else ""
