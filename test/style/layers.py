"""Arrows go one way: what the sources below src include is held against src/layers.txt.

`python3 test/style/layers.py` prints every include that the list does not allow, and every debt of the list
that is paid already."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
#: Files of no part: what joins them all.
TOP = "main"


class Layers:
    """The list: the floors of every part, lowest first, and the includes that are still wrong."""

    def __init__(self, text):
        self.floors = {}  # part: [[folder, ...], ...]
        self.debts = set()  # (file, file)
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            if debt := re.fullmatch(r"debt (\S+) -> (\S+)", line):
                self.debts.add(debt.groups())
            elif floors := re.fullmatch(r"(\w+):(.*)", line):
                self.floors[floors[1]] = [floor.split() for floor in floors[2].split("<")]
            else:
                raise SystemExit(f"src/layers.txt:{number}: neither a part nor a debt")

    def floor(self, part, folder):
        """Which floor a folder is on; None when the list does not have it."""
        return next((at for at, floor in enumerate(self.floors.get(part, [])) if folder in floor), None)


def links(text):
    """part: parts whose headers it may include, by what src/CMakeLists.txt links it with."""
    direct = {name: set(re.findall(r"opensandbox_(\w+)", rest))
              for name, rest in re.findall(r"^opensandbox_module\((\w+)(.*?)\)", text, re.MULTILINE | re.DOTALL)}

    def reached(name, seen):
        for other in direct[name] - seen:
            seen.add(other)
            reached(other, seen)
        return seen

    return {name: reached(name, set()) for name in direct}


def place(path):
    """(part, folder) of a file below src; what lies in the part itself is in folder "."."""
    part, *folders, _ = path.parts if len(path.parts) > 1 else (TOP, path.name)
    return part, "/".join(folders) or "."


def includes(path):
    """Files of src that a file includes, relative to src."""
    for name in INCLUDE.findall(path.read_text()):
        for base in (path.parent, SOURCES):
            if (base / name).is_file():
                yield (base / name).resolve().relative_to(SOURCES)
                break


def wrong(layers, linked, source, target):
    """What is wrong with an include, or nothing."""
    part, folder = place(source)
    other, into = place(target)
    if part == TOP:
        return None
    if part != other:
        return None if other in linked[part] else f"{part} is not linked with {other}"
    if folder == into:
        return None
    above, below = layers.floor(part, folder), layers.floor(part, into)
    missing = folder if above is None else into if below is None else None
    if missing is not None:
        return f"folder {part}/{missing} is on no floor of src/layers.txt"
    if below < above:
        return None
    return f"{part}/{folder} is {'beside' if below == above else 'below'} {part}/{into}"


def check(layers, linked, files):
    """Lines about what is wrong."""
    found, paid = [], set(layers.debts)
    for path in files:
        source = path.relative_to(SOURCES)
        for target in includes(path):
            reason = wrong(layers, linked, source, target)
            pair = (str(source), str(target))
            if reason and pair in layers.debts:
                paid.discard(pair)
            elif reason:
                found.append(f"src/{source} includes {target}: {reason}")
    found += [f"src/layers.txt: the debt {source} -> {target} is paid: take it out" for source, target in sorted(paid)]
    for part, floors in layers.floors.items():
        found += [f"src/layers.txt: there is no folder src/{part}/{folder}" for floor in floors for folder in floor
                  if not (SOURCES / part / folder).is_dir()]
    return found


def main():
    layers = Layers((SOURCES / "layers.txt").read_text())
    linked = links((SOURCES / "CMakeLists.txt").read_text())
    files = sorted(path for path in SOURCES.rglob("*") if path.suffix in {".cpp", ".hpp"})
    parts = {place(path.relative_to(SOURCES))[0] for path in files} - {TOP}
    found = [f"src/{part} is no part of src/CMakeLists.txt" for part in sorted(parts - linked.keys())]
    found = found or check(layers, linked, files)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(files)} files, {len(layers.debts)} debts", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
