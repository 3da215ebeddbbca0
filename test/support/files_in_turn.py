"""Runs beside other pytests of the same tests: each takes the next file that no other has taken.

OPENSANDBOX_TESTS_TAKEN names an empty directory that they share. Which file is whose is decided when
one is free for it, so that none waits long for the others at the end."""

import os
from itertools import groupby
from pathlib import Path


def pytest_runtestloop(session):
    taken = os.environ.get("OPENSANDBOX_TESTS_TAKEN")
    if not taken or session.testsfailed or session.config.option.collectonly:
        return None
    files = (list(items) for path, items in groupby(session.items, key=lambda item: item.path)
             if take(Path(taken), path))
    items = next(files, None)
    while items:
        for item, following in zip(items, items[1:]):
            run(session, item, following)
        # The next file is taken before the last test of this one: what both share is then kept.
        next_items = next(files, None)
        run(session, items[-1], next_items[0] if next_items else None)
        items = next_items
    return True


def take(directory, path):
    try:
        os.close(os.open(directory / path.name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
    except FileExistsError:
        return False
    return True


def run(session, item, following):
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
