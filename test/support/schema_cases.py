"""Bodies made from a JSON schema of specs/: whole ones, and each rule of the schema broken or met at
its edge, one at a time. Deterministic."""

import copy

from support import contract

#: Values of every kind; the ones that a field reads leniently are left out for it.
KINDS = ["", " ", "x", "UPPER", "-a", "a-", "a.b", "a..b", "/x", "a b", "ä", 5, -1, 1.5, True, [], [1], ["x"],
         {}, {"a": 1}, {"a": "b"}, {"a": None}, [{}], [None], None]
LENIENT = {
    # Booleans count as 0 and 1; text is not tried here, for any decimal text is a number.
    "integer": lambda value: isinstance(value, bool),
    "boolean": lambda value: value in (0, 1) and not isinstance(value, bool),
    "time": lambda value: isinstance(value, (int, float)) or value == "",
}


def resolve(name, schema):
    while "$ref" in schema:
        target = schema["$ref"].removeprefix("#/").split("/")
        node = contract.document(name)
        for part in target:
            node = node[part]
        schema = {**node, **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema


def plain(name, schema):
    """The schema of a value that is there: the alternative to null."""
    schema = resolve(name, schema)
    for one in schema.get("oneOf", []):
        if resolve(name, one).get("type") not in ("null", None):
            return plain(name, one)
    return schema


def kinds_of(schema):
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def lenient(schema, value):
    kinds = kinds_of(schema)
    if schema.get("format") == "date-time":
        return LENIENT["time"](value)
    return any(kind in LENIENT and LENIENT[kind](value) for kind in kinds)


def edges(schema):
    """Values at and beyond the limits of one schema."""
    found = []
    for key, step in (("minimum", -1), ("maximum", 1)):
        if key in schema:
            found += [schema[key], schema[key] + step]
    for key, step in (("minLength", -1), ("maxLength", 1)):
        if key in schema:
            found += ["a" * schema[key], "a" * (schema[key] + step)]
    if "enum" in schema:
        found += schema["enum"]
    return found


def positions(name, schema, value, path=()):
    """Every (path, schema) below the schema where `value` has something or could have."""
    schema = plain(name, schema)
    if path:
        yield path, schema
    if isinstance(value, dict):
        for member, inner in schema.get("properties", {}).items():
            yield from positions(name, inner, value.get(member), (*path, member))
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            for member in set(value) - set(schema.get("properties", {})):
                yield from positions(name, extra, value[member], (*path, member))
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from positions(name, schema["items"], item, (*path, index))


def changed(body, path, value):
    """A copy of the body with another value at the path; none at all when it is Ellipsis."""
    body = copy.deepcopy(body)
    at = body
    for part in path[:-1]:
        at = at[part]
    if value is not ...:
        at[path[-1]] = value
    elif isinstance(at, dict):
        at.pop(path[-1], None)
    return body


def cases(name, schema, body):
    """(path, body): `body` with one change each."""
    yield (), body
    for value in KINDS:
        if value is not None:
            yield (), value
    for path, inner in positions(name, schema, body):
        for value in [..., *KINDS, *edges(inner)]:
            if value is ... or not lenient(inner, value):
                yield path, changed(body, path, value)
        at = body
        for part in path:
            at = at[part] if isinstance(at, list) else (at or {}).get(part)
        if isinstance(at, dict) and "properties" in inner:
            yield path, changed(body, (*path, "unknownMember"), 1)
    if isinstance(body, dict):
        yield (), {**body, "unknownMember": 1}
