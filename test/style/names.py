"""What pages name of the sources is there: specs/architecture.md, and every README.md below src.

`python3 test/style/names.py` prints every name in backticks that is not. A word with a slash or an ending is a
file or a folder: below one that is named before it, from the page, from src or from the root. Any other word is a
name in code, or a file's without its ending; `*` stands for anything. Where a paragraph, a point of a list or a
row of a table names files or folders, its other names stand in one of them. Words of a picture that look like
code are somewhere in it."""

import fnmatch
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
PAGES = [ROOT / "specs" / "architecture.md", *sorted(SOURCES.rglob("README.md"))]
PATH = re.compile(r"(?!/)(?:[\w.*-]+/)+[\w.*-]*|[\w*-]+\.(?:cpp|hpp|cmake|html|java|js|md|py|txt|yaml)")
NAME = re.compile(r"[A-Za-z_*][\w*]*(?:::[\w*]+)*(?:\(\))?")
#: Words of a picture that are no plain English.
CODE = re.compile(r"\b(?:[A-Za-z]+(?:_\w+)+|[A-Z][a-z]+(?:[A-Z][a-z]+)+)\b")
COMMENT = re.compile(r"(?:^|\s)//.*", re.MULTILINE)
#: One of a single word may be a role's name, or a program's; others are sentences.
STRING = re.compile(r'"(\w+)"|"(?:[^"\\\n]|\\.)*"')
BEGINS = re.compile(r"\||[-*] |\d+\. |#")


def pieces(text):
    """(line, text, whether it is a picture) of each paragraph, point of a list, row and picture."""
    first, lines, picture = 1, [], False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.startswith("```")
        if lines and (fence or not picture and (not line.strip() or BEGINS.match(line))):
            yield first, "\n".join(lines), picture
            lines = []
        if fence:
            picture = not picture
        elif lines or line.strip():
            first = first if lines else number
            lines.append(line)


def places(word, bases):
    """Files and folders that a path means, from the first base that has them."""
    for base in bases:
        if found := sorted(base.glob(word.rstrip("/"))):
            return found
    return []


@cache
def words(place):
    """Names in the code of a file and of its header, or of all files below a folder."""
    if place.is_dir():
        below = (path for path in place.rglob("*") if path.is_file() and path.suffix != ".md")
        return frozenset().union(*map(words, below))
    found = {place.stem}
    for path in {place, place.with_suffix(".hpp")}:
        if path.is_file():
            code = COMMENT.sub("", STRING.sub(r"\1", path.read_text()))
            found.update(re.findall(r"\w+", code))
    return frozenset(found)


def stands(name, where):
    """Whether every part of a::b() stands in one of the places."""
    return all(any(part in words(place) or "*" in part and fnmatch.filter(words(place), part) for place in where)
               for part in name.removesuffix("()").split("::"))


def problems(page):
    everywhere = (SOURCES, ROOT / "include")
    for line, text, picture in pieces(page.read_text()):
        at = f"{page.relative_to(ROOT)}:{line}"
        if picture:
            names = (name for name in CODE.findall(text) if not stands(name, everywhere))
            yield from (f"{at}: no code names {name}" for name in names)
            continue
        where, names = [], []
        for word in " ".join(re.findall(r"`([^`]+)`", text)).split():
            if PATH.fullmatch(word):
                found = places(word, [*where, page.parent, SOURCES, ROOT])
                where += found
                if not found:
                    yield f"{at}: there is no {word}"
            elif NAME.fullmatch(word):
                names.append(word)
        for name in names:
            if not stands(name, where or everywhere):
                yield f"{at}: no code {'of the files named with it ' if where else ''}names {name}"


def main():
    found = [problem for page in PAGES for problem in problems(page)]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(PAGES)} pages", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
