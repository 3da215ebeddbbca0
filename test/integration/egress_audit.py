"""What is told of refusals: to the operator's webhook, in the log and in the metrics."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.egress_fixtures import internet, with_settings  # noqa: F401
from support.egress_internet import DIRECT
from support.egress_served import Docker, Native
from support.egress_sites import Sidecar
from support.shell import eventually

#: Of the host in the test's world, which all sandboxes' enforcers reach.
HOST = "192.0.2.1"


class Receiver:
    """Takes what webhooks send. The first delivery of a name in `fails` is answered 500."""

    def __init__(self):
        self.told, self.fails = [], set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                failing = body["hostname"] in outer.fails
                outer.fails.discard(body["hostname"])
                if not failing:
                    outer.told.append((self.path, self.headers["Content-Type"], body))
                self.send_response(500 if failing else 204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.url = f"http://{HOST}:{self.server.server_address[1]}/hook?team=red"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def of(self, name):
        return [body for _, _, body in self.told if body["hostname"] == name]


@pytest.fixture(scope="module")
def receiver(internet):  # noqa: F811
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module", params=[Sidecar, Native, Docker], ids=lambda kind: kind.name)
def site(request, internet, receiver):  # noqa: F811
    settings = {"OPENSANDBOX_EGRESS_DENY_WEBHOOK": receiver.url}
    with with_settings(request.param, f"told-{request.param.name}", settings)(internet) as site:
        site.allow("good.example")
        yield site


def figure(site, name, **labels):
    """A metric's value."""
    text = site.api.get("/metrics").text
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    [line] = [line for line in text.splitlines()
              if line.startswith(name + "{") and all(label in line for label in wanted)]
    return float(line.rsplit(" ", 1)[1])


def test_the_webhook_is_told_of_names_and_addresses(site, receiver):
    site.dns("Webhook.Denied.Example", wait=5)
    site.tcp(DIRECT, 81)
    for target in ("webhook.denied.example", DIRECT):
        [body] = eventually(lambda: receiver.of(target), 10, 0.05, f"{target} being told")
        assert body["source"] == "opensandbox-egress"
        assert body["sandboxId"] == site.identity()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", body["timestamp"])
    path, kind, _ = receiver.told[0]
    assert path == "/hook?team=red" and kind.startswith("application/json")
    receiver.told.clear()


def test_what_is_refused_again_and_again_is_told_once(site, receiver):
    before = figure(site, "egress_deny_webhook_total", outcome="repeated")
    for _ in range(5):
        site.dns("again.example")
    eventually(lambda: receiver.of("again.example"), 10, 0.05, "its being told")
    eventually(lambda: figure(site, "egress_deny_webhook_total", outcome="repeated") == before + 4, 10, 0.05)
    time.sleep(0.2)
    assert len(receiver.of("again.example")) == 1
    receiver.told.clear()


def test_what_the_webhook_does_not_take_is_sent_again(site, receiver):
    receiver.fails.add("retried.example")
    site.dns("retried.example")
    eventually(lambda: receiver.of("retried.example"), 15, 0.05, "the second attempt")
    assert len(receiver.of("retried.example")) == 1
    assert not receiver.fails


def test_refusals_are_counted_and_logged(site):
    before = {kind: figure(site, "egress_policy_denied_total", kind=kind) for kind in ("name", "address")}
    since = site.last_denial()
    site.dns("logged.example")
    site.tcp(DIRECT, 8099)
    site.wait_denied(since, kind="name", target="logged.example", reason="default: deny")
    site.wait_denied(since, kind="address", target=DIRECT, port=8099)
    after = {kind: figure(site, "egress_policy_denied_total", kind=kind) for kind in ("name", "address")}
    assert after == {kind: count + 1 for kind, count in before.items()}
    # One line each, with who, what and why.
    for target, words in (("logged.example", ("name",)), (DIRECT, ("address", "8099"))):
        def line():
            return next((line for line in site.log_text().splitlines()
                         if "egress denied" in line and target in line and all(w in line for w in words)
                         and "egress.denied" in line and site.identity() in line), None)

        assert "default: deny" in eventually(line, 10, 0.1, f"a line about {target}")
