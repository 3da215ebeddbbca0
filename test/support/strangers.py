"""No source uses what is another's: sources of a folder are compiled together, so a call could bind to a
function of its neighbour that fits better than the declared one, and nothing would say so.

`python3 test/support/strangers.py BUILD` reads the units of BUILD/compile_commands.json with libclang and
prints every use of something that is declared only in another source."""

import glob
import json
import re
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor

from clang.cindex import Config, CursorKind, Index

USES = {CursorKind.DECL_REF_EXPR, CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF, CursorKind.CALL_EXPR}
SCOPES = {CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC}
LIBRARIES = ["/usr/lib/x86_64-linux-gnu/libclang-19.so.1", "/usr/lib/llvm-19/lib/libclang.so.1"]
#: Words of the command that libclang does not need, with how many words follow each.
LEFT_OUT = {"-c": 1, "-o": 1, "-Xclang": 1, "-mllvm": 1, "-Winvalid-pch": 0, "-Werror": 0}


def arguments_of(command):
    """Those of the compiler, with the precompiled header as a text."""
    words = iter(shlex.split(command)[1:])
    kept = []
    for word in words:
        if word in LEFT_OUT:
            for _ in range(LEFT_OUT[word]):
                next(words)
        else:
            kept.append(word)
    header = re.search(r"(\S+/cmake_pch\.hxx)\b", command)
    return kept + (["-include", header[1]] if header else [])


def file_of(location):
    return location.file.name if location.file else ""


def uses_below(cursor, source):
    """(line, name, source, line) of what is declared in another source and in no header."""
    for child in cursor.get_children():
        used = child.referenced if child.kind in USES else None
        if used is not None:
            where = file_of(used.location)
            # An alias may be declared in both; the compiler's own functions are where they are first used.
            hidden = file_of(used.canonical.location).endswith(".cpp")
            if hidden and where.endswith(".cpp") and where != source and not used.spelling.startswith("__builtin_"):
                yield child.location.line, used.spelling, where, used.location.line
        yield from uses_below(child, source)


def uses_in(cursor):
    for child in cursor.get_children():
        source = file_of(child.location)
        if source.endswith(".cpp"):
            if child.kind in SCOPES:
                yield from uses_in(child)
            else:
                for line, *what in uses_below(child, source):
                    yield source, line, *what


def strangers_in(unit):
    sys.setrecursionlimit(100_000)
    if not Config.loaded:
        Config.set_library_file(next(found for name in LIBRARIES for found in glob.glob(name)))
    parsed = Index.create().parse(unit["file"], args=arguments_of(unit["command"]))
    broken = [str(word) for word in parsed.diagnostics if word.severity >= word.Error]
    return broken + [f"{source}:{line}: uses {name} of {other}:{at}"
                     for source, line, name, other, at in sorted(set(uses_in(parsed.cursor)))]


def main(build):
    with open(f"{build}/compile_commands.json") as file:
        units = [unit for unit in json.load(file) if re.search(r"/generated/unity/", unit["file"])]
    assert units, f"{build} compiles every source by itself"
    with ProcessPoolExecutor(2) as pool:
        found = [line for lines in pool.map(strangers_in, units) for line in lines]
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
