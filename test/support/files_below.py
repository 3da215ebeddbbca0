"""Files below a directory in which others make and remove them meanwhile."""

import os
from pathlib import Path


def files_below(directory):
    """Every file and directory below it, as a Path. A directory that goes meanwhile has none."""
    for place, directories, files in os.walk(directory):
        yield from (Path(place, name) for name in directories + files)


def content_below(directory, limit, leave_out=lambda path: False):
    """Path and bytes of every regular file below it that is smaller than `limit` and still there."""
    for path in files_below(directory):
        try:
            if leave_out(path) or not path.is_file() or path.stat().st_size >= limit:
                continue
            yield path, path.read_bytes()
        except FileNotFoundError:
            continue
