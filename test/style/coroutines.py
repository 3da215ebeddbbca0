"""A coroutine takes what it keeps over a suspension by value (specs/development.md, Coroutines).

`python3 test/style/coroutines.py` prints every function, lambda and type of a function that returns an awaitable
and takes a reference to const or a view."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("include", "src")
#: Comments and literals, which are blanked.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"'
                     r"|'(?:[^'\\\n]|\\.)+'(?!\w)", re.DOTALL)
AWAITABLE = re.compile(r"\bawaitable\s*<", re.IGNORECASE)
#: What stands between a function's result and its parameters: a name, of a class's member perhaps, (*) or nothing.
NAME = re.compile(r"\s*(?:\(\s*\*\s*\)|\boperator\s*\(\s*\)|[\w:]*)\s*\(")
#: What stands between the parameters and the body.
QUALIFIERS = re.compile(r"(?:\s*(?:const|noexcept|override|final))*\s*")
COROUTINE = re.compile(r"\bco_(?:await|return|yield)\b")
#: What stands between a lambda's parameters and its result.
ARROW = re.compile(r"\)(?:\s*(?:mutable|noexcept|const))*\s*->\s*(?:[\w:]*::)?$")
BORROWED = re.compile(r"\bconst\b[^&]*&(?!&)|\bstring_view\b")
#: Bytes to read or to write are the caller's until that is done, as Asio's buffers are.
BUFFER = re.compile(r"(?:std::)?(?:span<[^>]*>(?: \w+)?|string_view (?:\w+_)?bytes)")
#: Of a parameter that is itself a function: what that one takes.
NESTED = re.compile(r"\([^()]*\)")
CLOSING = {"(": ")", "<": ">", "{": "}"}


def code(text):
    """The text without its comments and literals, every line where it was."""
    return SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def closed(text, opened):
    """Where the bracket that opens here is closed."""
    bracket, depth = text[opened], 0
    for at in range(opened, len(text)):
        if text[at] == bracket:
            depth += 1
        elif text[at] == CLOSING[bracket] and not text.startswith("->", at - 1):
            depth -= 1
            if depth == 0:
                return at
    return len(text)


def opened(text, end):
    """Where the round bracket that is closed here opens."""
    depth = 0
    for at in range(end, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at
    return 0


def parameters(text):
    """(offset, text) of each parameter in a list."""
    begin, depth = 0, 0
    for at, letter in enumerate(text + ","):
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and depth == 0:
            word = text[begin:at]
            yield begin + len(word) - len(word.lstrip()), " ".join(word.split())
            begin = at + 1


def only_forwards(text, at):
    """Whether a body begins here that is no coroutine's."""
    begin = QUALIFIERS.match(text, at).end()
    return text.startswith("{", begin) and not COROUTINE.search(text, begin, closed(text, begin))


def lists(text):
    """(begin, end) of each list of parameters of what returns an awaitable, unless it is seen to be no coroutine."""
    for found in AWAITABLE.finditer(text):
        result = closed(text, found.end() - 1) + 1
        if name := NAME.match(text, result):
            end = closed(text, name.end() - 1)
            if not only_forwards(text, end + 1):
                yield name.end(), end
        arrow = ARROW.search(text, max(0, found.start() - 80), found.start())
        if arrow and not only_forwards(text, result):
            yield opened(text, arrow.start()) + 1, arrow.start()


def problems(path):
    text = code(path.read_text())
    for begin, end in lists(text):
        for offset, parameter in parameters(text[begin:end]):
            kept = NESTED.sub("", parameter.split("=")[0])
            if BORROWED.search(kept) and not BUFFER.fullmatch(kept.strip()):
                line = text.count("\n", 0, begin + offset) + 1
                yield f"{path.relative_to(ROOT)}:{line}: a coroutine takes '{parameter}'"


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp"):
                yield path


def main():
    files = list(sources())
    found = [problem for path in files for problem in problems(path)]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(files)} files", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
