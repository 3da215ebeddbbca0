"""The lines that a bench prints, and what it asserts."""

import statistics


def ms(seconds):
    return f"{seconds * 1000:9.2f} ms"


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class Table:
    def __init__(self):
        self.failed = False

    def row(self, name, value, note=""):
        print(f"  {name:<58} {value:>14}  {note}", flush=True)

    def times(self, name, values):
        self.row(name, ms(statistics.median(values)),
                 f"median of {len(values)}; best {ms(min(values)).strip()}, "
                 f"95 % {ms(percentile(values, 0.95)).strip()}")

    def attempt(self, what, measure, times=3):
        """Measures until it holds, at most so often: what a busy machine spoils once is no miss."""
        for left in reversed(range(times)):
            if measure():
                self.check(what, True)
                return
            if left:
                self.row("missed, measured again", "")
        self.check(what, False)

    def check(self, what, holds):
        print(f"  {'ok' if holds else 'MISSED':<7} {what}", flush=True)
        self.failed |= not holds
