"""Sections of the contract that comments cite stand in specs/contract.md.

`python3 test/style/citations.py` prints every citation of a section that is not there, and every one that does
not say of which part it is. `(lifecycle 2.4)`, `(execd contract 3.1, 3.2)` and `network contract part 1` are
citations."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = ROOT / "specs" / "contract.md"
FOLDERS = ("include", "src", "test", "packaging", "third_party")
SLASHED = {".hpp", ".cpp", ".c", ".in", ".js", ".java"}
HASHED = {".py", ".sh", ".txt", ".cmake", ""}
NUMBER = r"\d+(?:\.\d+)*"
SLASHES = re.compile(r"//[/!]?<?(.*)")
HASH = re.compile(r"(?:^|\s)#:?(?:\s(.*)|$)")
#: What says in Python what a file, a class or a function is.
QUOTES = re.compile(r'"""(.*?)"""', re.DOTALL)


def sections(text):
    """(part, number) of every row below the heading of a part: ("lifecycle", "2.4")."""
    part = None
    for line in text.splitlines():
        if line.startswith("#"):
            heading = re.match(r"## (\w+): ", line)
            part = heading and heading[1]
        elif part and (row := re.match(rf"\| ({NUMBER}) \| \S", line)):
            yield part, row[1]


def comments(path):
    """(line, text) of every comment; one that goes on over several lines is one text."""
    text = path.read_text()
    if path.suffix == ".py":
        for found in QUOTES.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, " ".join(found[1].split())
    mark = SLASHES if path.suffix in SLASHED else HASH
    first, words = 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        comment = mark.search(line)
        # Behind code another one begins.
        if words and (not comment or line[: comment.start()].strip()):
            yield first, " ".join(words)
            words = []
        if comment:
            first = first if words else number
            words.append((comment[1] or "").strip())


class Citations:
    """Finds the citations of a text. `parts` are the parts that the contract has."""

    def __init__(self, parts):
        numbers = rf"{NUMBER}(?:(?:, | and | or | to ){NUMBER})*"
        self.whole = re.compile(rf"\b({'|'.join(sorted(parts))})(?: contract)?(?:,? section|,? part)? ({numbers})")
        self.nameless = re.compile(rf"\b[Cc]ontract,? (?:section |part )?{NUMBER}|§ ?{NUMBER}")

    def of(self, text):
        """(part, number) of each; of "2.1 to 2.4" the first and the last."""
        for found in self.whole.finditer(text):
            for number in re.findall(NUMBER, found[2]):
                yield found[1], number

    def without_part(self, text):
        return self.nameless.findall(self.whole.sub("", text))


def problems(known, files):
    citations = Citations({part for part, _ in known})
    for path in files:
        for line, text in comments(path):
            where = f"{path.relative_to(ROOT)}:{line}"
            for part, number in citations.of(text):
                if (part, number) not in known:
                    yield f"{where}: specs/contract.md has no {part} {number}"
            for words in citations.without_part(text):
                yield f"{where}: '{words}' does not say of which part it is"


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SLASHED | HASHED and path.is_file() and "node_modules" not in path.parts:
                yield path


def main():
    known = set(sections(CONTRACT.read_text()))
    found = list(problems(known, sources()))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(known)} sections", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
