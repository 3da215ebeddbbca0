"""openapi.py VERSION OUT DOCUMENT...: the OpenAPI documents of specs/ as one JSON document.

The first one gives title, conventions and servers. What two documents both define must be equal.
Runs when the program is built; needs python3-yaml."""

import json
import sys

import yaml


def merge(into, more, where):
    for name, value in more.items():
        if name not in into:
            into[name] = value
        elif into[name] != value:
            sys.exit(f"openapi.py: two documents define {where}/{name} differently")


def main(version, out, *names):
    documents = []
    for name in names:
        with open(name, encoding="utf-8") as text:
            documents.append(yaml.safe_load(text))
    whole = documents[0]
    for other in documents[1:]:
        merge(whole["paths"], other["paths"], "paths")
        for kind, members in other.get("components", {}).items():
            merge(whole["components"].setdefault(kind, {}), members, f"components/{kind}")
        known = {tag["name"] for tag in whole["tags"]}
        whole["tags"] += [tag for tag in other.get("tags", []) if tag["name"] not in known]
    whole["info"]["version"] = version
    # What starts with x- only holds parts that YAML repeats elsewhere.
    whole = {name: value for name, value in whole.items() if not name.startswith("x-")}
    with open(out, "w", encoding="utf-8") as text:
        json.dump(whole, text, ensure_ascii=False, separators=(",", ":"))


main(*sys.argv[1:])
