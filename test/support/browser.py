"""A real Chromium without a window, spoken to over a pipe (Chrome DevTools Protocol)."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--remote-debugging-pipe"]
PATIENCE = 60


class Browser:
    """Ends with the `with` block, and leaves no profile."""

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="opensandbox-test-chromium-")
        theirs_in, self.commands = os.pipe()
        self.answers, theirs_out = os.pipe()
        # The browser reads from 3 and writes to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", "chromium", *FLAGS,
             f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": self.profile}, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.last = 0
        self.pending = b""
        self.events = []
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(20)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, 9)
            self.process.wait(20)
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, wanted):
        """The first message that `wanted` says yes to."""
        end = time.monotonic() + PATIENCE
        for message in self.events:
            if wanted(message):
                self.events.remove(message)
                return message
        while True:
            while b"\0" in self.pending:
                text, self.pending = self.pending.split(b"\0", 1)
                message = json.loads(text)
                if wanted(message):
                    return message
                self.events.append(message)
            ready, _, _ = select.select([self.answers], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self.answers, 1 << 20)
            assert piece, "the browser is gone"
            self.pending += piece

    def call(self, method, session=None, **params):
        self.last += 1
        sent = self.last
        message = {"id": sent, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        answer = self.receive(lambda m: m.get("id") == sent)
        assert "error" not in answer, f"{method}: {answer}"
        return answer["result"]

    def page(self, url):
        """A page in a profile of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        return Page(self, context, url)


class Page:
    def __init__(self, browser, context, url):
        self.browser = browser
        self.context = context
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)
        self.session = browser.call("Target.attachToTarget", targetId=target["targetId"],
                                    flatten=True)["sessionId"]
        browser.call("Page.enable", self.session)
        browser.call("Page.setLifecycleEventsEnabled", self.session, enabled=True)
        self.go(url)

    def another(self, url):
        """In the same profile."""
        return Page(self.browser, self.context, url)

    def go(self, url):
        done = self.browser.call("Page.navigate", self.session, url=url)
        assert "errorText" not in done, done
        self.browser.receive(lambda m: m.get("method") == "Page.lifecycleEvent"
                             and m["params"]["loaderId"] == done["loaderId"]
                             and m["params"]["name"] == "load")

    def run(self, script):
        """The value of an expression, waited for when it is a promise; what it throws as text."""
        result = self.browser.call("Runtime.evaluate", self.session, expression=script,
                                   awaitPromise=True, returnByValue=True,
                                   userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            return "threw " + details.get("exception", {}).get("description", details["text"])
        return result["result"].get("value")

    def cookies(self):
        found = self.browser.call("Storage.getCookies", browserContextId=self.context)["cookies"]
        return {cookie["name"] for cookie in found}
