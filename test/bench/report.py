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


class Comparison:
    """The same measures of several subjects, side by side, with ratios to the first."""

    def __init__(self, names):
        self.names = names
        self._rows = {}

    def less(self, name, title, value, unit):
        """A measure of which less is better."""
        self._rows.setdefault(title, (unit, False, {}))[2][name] = value

    def more(self, name, title, value, unit):
        self._rows.setdefault(title, (unit, True, {}))[2][name] = value

    def value(self, name, title):
        return self._rows[title][2][name]

    def show(self):
        print(f"  {'':<34}" + "".join(f"{name:>32}" for name in self.names))
        for title, (unit, more, values) in self._rows.items():
            first = values[self.names[0]]
            cells = []
            for name in self.names:
                value = values[name]
                ratio = value / first if more else first / value
                beside = f"{ratio:.1f} x" if name != self.names[0] else ""
                cells.append(f"{f'{value:,.1f} {unit}'.strip():>20}{beside:>12}")
            print(f"  {title:<34}" + "".join(cells), flush=True)
