"""Which processors the parts of a measure run on."""

import os
from contextlib import contextmanager
from pathlib import Path

from support.server import children_of


def keep(process, processors):
    """This process and its descendants, all their threads, on these processors from now on."""
    waiting = [process]
    while waiting:
        pid = waiting.pop()
        waiting += children_of(pid)
        try:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), processors)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile


@contextmanager
def apart(subject, peers):
    """While this lasts, the subject has one processor to itself, and its peers, with what is
    started meanwhile, have the others: what moves gigabits would fight for them otherwise, and what
    was measured were the fight. All are processes' ids. With one processor nothing changes."""
    all_of_them = os.sched_getaffinity(0)
    first = {min(all_of_them)}
    others = all_of_them - first or all_of_them
    try:
        keep(subject, first)
        for peer in peers:
            keep(peer, others)
        os.sched_setaffinity(0, others)
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)
        for pid in (subject, *peers):
            keep(pid, all_of_them)
