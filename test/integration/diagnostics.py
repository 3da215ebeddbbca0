"""What a sandbox wrote, what happened to it, and how its runtime sees it."""

import re
from datetime import datetime, timedelta, timezone

import pytest

from support.shell import eventually

TALKER = ["sh", "-c", "for i in $(seq 1 150); do echo line $i; done; echo to stderr >&2; exec tail -f /dev/null"]
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z ")


@pytest.fixture(scope="module")
def talker(server):
    with server.create(entrypoint=TALKER, env={"API_TOKEN": "hush-hush", "COLOUR": "blue"},
                       metadata={"team": "x"}) as sandbox:
        eventually(lambda: "to stderr" in text(sandbox, "logs"), 20, 0.05, "the sandbox's output")
        yield sandbox


def ask(sandbox, page, **query):
    return sandbox.server.api().get(sandbox.path(f"/diagnostics/{page}"), query=query)


def text(sandbox, page, **query):
    reply = ask(sandbox, page, **query)
    assert reply.status == 200, reply
    assert reply.header("Content-Type") == "text/plain; charset=utf-8"
    return reply.text


def lines_of(content):
    return [STAMP.sub("", line) for line in content.splitlines()]


def test_logs_are_the_last_lines_of_both_streams_with_times(talker):
    shown = text(talker, "logs")
    assert all(STAMP.match(line) for line in shown.splitlines()), shown[:300]
    assert len(shown.splitlines()) == 100
    assert "to stderr" in lines_of(shown)
    assert lines_of(text(talker, "logs", tail=151)).count("line 1") == 1
    assert len(text(talker, "logs", tail=2).splitlines()) == 2
    assert text(talker, "logs", since="1h", tail=10000).count("\n") == 151
    assert text(talker, "logs", since="0s") == "(no logs)"
    assert text(talker, "logs", since="nonsense", tail=10000).count("\n") == 151


def test_logs_as_json_are_the_same_and_say_that_there_are_more(talker):
    reply = ask(talker, "logs", scope="Container")
    assert reply.header("Deprecation") is None
    body = reply.json
    assert (body["sandboxId"], body["kind"], body["scope"]) == (talker.id, "logs", "container")
    assert body["content"] == text(talker, "logs")
    assert body["contentLength"] == len(body["content"].encode()) and body["truncated"] is True
    assert len(ask(talker, "logs", scope="all").json["warnings"]) == 1


def test_a_silent_sandbox_has_no_logs(server, sandbox):
    assert text(sandbox, "logs") == "(no logs)"
    body = ask(sandbox, "logs", scope="all").json
    assert (body["content"], body["contentLength"], body["truncated"]) == ("", 0, False)


def test_only_the_old_forms_are_deprecated(talker):
    for page in ("logs", "events"):
        assert ask(talker, page).header("Deprecation") == "true"
        assert ask(talker, page, scope="all").header("Deprecation") is None
    for page in ("inspect", "summary"):
        assert ask(talker, page).header("Deprecation") is None


def test_events_tell_the_sandboxs_life(server):
    with server.create(entrypoint=["sleep", "1000"]) as sandbox:
        later = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()
        assert server.api().post(sandbox.path("/renew-expiration"), {"expiresAt": later}).status == 200
        sandbox.run("kill -KILL $(pgrep -x sleep)")
        eventually(lambda: sandbox.state() == "Failed", 20, 0.05, "the sandbox's end")
        shown = text(sandbox, "events")
        assert shown.startswith("Container:  ")
        for part in ("\nStatus:     ", "\nCreated:    ", "CONTAINER_RUNNING", "Sandbox expires at", "exited with code 137"):
            assert part in shown, shown
        assert len(text(sandbox, "events", limit=2).splitlines()) == 2
        body = ask(sandbox, "events", scope="runtime").json
        assert body["content"] == shown and body["truncated"] is False
        # What ended can still be asked about.
        assert "SANDBOX DIAGNOSTICS SUMMARY" in text(sandbox, "summary")


def test_the_inspection_shows_how_it_is_made_and_no_secret(talker):
    shown = text(talker, "inspect")
    for part in ("Container ID:", "Status:", "Running:        true", "Paused:         false", "CPU: 1.00 cores",
                 "Memory: 512 MiB", "API_TOKEN=***", "COLOUR=blue"):
        assert part in shown, shown
    assert "hush-hush" not in shown
    token = talker.endpoint(44772)["headers"]["X-EXECD-ACCESS-TOKEN"]
    assert token not in shown and token not in text(talker, "summary")


def test_the_summary_has_it_all(talker):
    shown = text(talker, "summary", tail=3, event_limit=1)
    assert f"Sandbox ID: {talker.id}" in shown
    parts = re.split(r"\n-{40}\n([A-Z][^\n]*)\n-{40}\n", shown)
    assert parts[1::2] == ["INSPECT", "EVENTS", "LOGS (last 3 lines)"]
    assert parts[2].strip() == text(talker, "inspect")
    assert len(parts[4].strip().splitlines()) == 1
    assert len(parts[6].strip().splitlines()) == 3


@pytest.mark.parametrize("page, query, where", [
    ("logs", {"tail": 0}, "tail"), ("logs", {"tail": 10001}, "tail"), ("logs", {"tail": "x"}, "tail"),
    ("events", {"limit": 501}, "limit"), ("summary", {"event_limit": 0}, "event_limit"),
])
def test_numbers_out_of_range_are_named(talker, page, query, where):
    reply = ask(talker, page, **query)
    assert reply.status == 422 and reply.json["detail"][0]["loc"] == ["query", where], reply


@pytest.mark.parametrize("page", ["logs", "events", "inspect", "summary"])
def test_an_unknown_sandbox_is_not_found(server, page):
    reply = server.api().get(f"/sandboxes/nobody/diagnostics/{page}")
    assert reply.status == 404 and reply.json["code"].endswith("::SANDBOX_NOT_FOUND"), reply


def test_what_is_no_text_is_shown_as_well_as_it_can_be(server):
    with server.create(entrypoint=["sh", "-c", r"printf 'a \377 b\n'; exec tail -f /dev/null"]) as sandbox:
        body = eventually(lambda: (b := ask(sandbox, "logs", scope="all").json)["content"] and b,
                          20, 0.05, "the sandbox's output")
        assert body["content"].endswith("a � b\n")
        assert body["contentLength"] == len(body["content"].encode())
