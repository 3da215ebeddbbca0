"""A sandbox's page in a real browser: by the path proxy it comes from the server's own address, and must
be a stranger there; ordinary applications work all the same."""

import pytest

from support.browser import Browser
from support.shell import eventually

#: What hostile and ordinary applications inside serve.
SERVICE = r'''
import base64, hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILES = {
    "/hostile": ("text/html", "<!doctype html><title>hostile</title>"),
    "/app": ("text/html", """<!doctype html><title>app</title><link rel=stylesheet href=style.css>
        <form method=post action=form><input name=a value=1></form><img src=picture.svg>
        <script type=module src=module.js></script>"""),
    "/module.js": ("text/javascript", "import {n} from './other.js'; window.loaded = n;"),
    "/other.js": ("text/javascript", "export const n = 7;"),
    "/style.css": ("text/css", "body { color: rgb(1, 2, 3) }"),
    "/picture.svg": ("image/svg+xml",
        '<svg xmlns="http://www.w3.org/2000/svg" width="5" height="5"></svg>'),
    "/data.json": ("application/json", '{"own": true}'),
    "/events": ("text/event-stream", "data: tick\n\n"),
    "/worker.js": ("text/javascript", "self.onfetch = () => {};"),
}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.headers.get("Upgrade") == "websocket":
            return self.websocket()
        self.reply(*FILES.get(self.path, ("text/plain", "none")))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.reply("text/html", "<!doctype html><title>posted " + body + "</title>")

    def reply(self, kind, text):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Set-Cookie", "planted=1; Path=/")
        self.send_header("Service-Worker-Allowed", "/")
        if self.path == "/hostile":
            self.send_header("Clear-Site-Data", '"*"')
        self.end_headers()
        self.wfile.write(text.encode())

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                            ("Sec-WebSocket-Accept", accept), ("Set-Cookie", "planted=2; Path=/")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"\x81\x05hello")
        self.wfile.flush()
        self.rfile.read(1)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
'''

#: A promise of what an attempt came to: its value as text, or "refused".
ATTEMPT = "(async () => { try { return String(await (%s)) } catch (e) { return 'refused' } })()"


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def inside(server):
    with server.create(entrypoint=["python3", "-c", SERVICE]) as sandbox:
        api = server.api(key=False)
        eventually(lambda: api.get(sandbox.path("/proxy/8000/data.json"), check=False).status == 200,
                   20, 0.05, "the service inside")
        yield sandbox


@pytest.fixture
def origin(server):
    return f"http://{server.address}"


@pytest.fixture
def base(origin, inside):
    return f"{origin}/v1/sandboxes/{inside.id}/proxy/8000"


def attempt(page, script):
    return page.run(ATTEMPT % script)


def test_a_hostile_page_reads_and_keeps_nothing_of_the_servers_origin(browser, origin, base):
    ours = browser.page(f"{origin}/docs")
    ours.run("localStorage.setItem('typed', 'key'); document.cookie = 'ours=1'")
    page = ours.another(f"{base}/hostile")
    assert page.run("self.origin") == "null"
    for what in ("document.cookie", "(document.cookie = 'kept=1')", "localStorage.getItem('typed')",
                 "sessionStorage.length", "indexedDB.open('x')", "caches.open('x')",
                 "navigator.serviceWorker.register('worker.js', {scope: '/'})",
                 "navigator.storage.getDirectory()", "new SharedWorker('worker.js').port",
                 "fetch('/docs').then(r => r.text())", "fetch('/openapi.json').then(r => r.text())",
                 "fetch('/v1/sandboxes').then(r => r.text())",
                 "fetch('/v1/sandboxes', {credentials: 'include'}).then(r => r.text())",
                 "fetch('/health').then(r => r.text())"):
        assert attempt(page, what) == "refused", what
    # Neither a frame nor a window of the page where keys are typed lets itself be read.
    framed = """new Promise(done => { const f = document.createElement('iframe'); f.src = '/docs';
        f.onload = () => { try { done('read ' + f.contentWindow.document.title) }
                           catch (e) { done('refused') } }; document.body.append(f) })"""
    assert page.run(framed) == "refused"
    held = """new Promise(done => { const w = open('/docs'); if (!w) done('no window');
        setTimeout(() => { try { done('read ' + w.document.title) }
                           catch (e) { done('refused') } }, 500) })"""
    assert page.run(held) == "refused"
    # Nothing was cleared and nothing planted.
    assert ours.cookies() == {"ours"}
    again = ours.another(f"{origin}/docs")
    assert again.run("localStorage.getItem('typed')") == "key"
    assert again.run("navigator.serviceWorker.getRegistrations().then(all => all.length)") == 0


def test_no_service_worker_comes_from_a_sandbox(browser, origin, base):
    # Not a sandbox's page, but one of the origin itself: even that gets none.
    page = browser.page(f"{origin}/health")
    told = page.run(f"navigator.serviceWorker.register('{base}/worker.js', {{scope: '/'}})"
                    ".then(() => 'registered')")
    assert told.startswith("threw ") and "403" in told, told


def test_a_page_of_a_sandbox_changes_nothing_on_a_server_without_a_key(browser, make_server):
    server = make_server("open", sections={"server": {"host": "127.0.0.1", "port": 0, "api_key": ""}},
                         key="-")
    with server.create(entrypoint=["python3", "-c", SERVICE]) as sandbox:
        eventually(lambda: server.api().get(sandbox.path("/proxy/8000/"), check=False).status == 200,
                   20, 0.05, "the service inside")
        address = f"http://{server.address}"
        page = browser.page(f"{address}/v1/sandboxes/{sandbox.id}/proxy/8000/hostile")
        body = '{"image":{"uri":"host"},"entrypoint":["sleep","9"],"resourceLimits":{}}'
        for options in ("{}", f"{{method: 'POST', body: '{body}'}}",
                        f"{{method: 'POST', mode: 'no-cors', body: '{body}'}}"):
            attempt(page, f"fetch('/v1/sandboxes', {options}).then(r => r.text())")
        assert attempt(page, "fetch('/v1/sandboxes').then(r => r.text())") == "refused"
        assert attempt(page, f"fetch('/v1/sandboxes/{sandbox.id}', {{method: 'DELETE'}})") == "refused"
        items = server.api().get("/sandboxes").json["items"]
        assert [item["id"] for item in items] == [sandbox.id]


def test_an_ordinary_application_works(browser, base):
    page = browser.page(f"{base}/app")
    assert page.run("document.title") == "app"
    # Module scripts are fetched as from another origin, and so are events and data.
    loaded = "new Promise(y => { const t = setInterval(() => window.loaded && (clearInterval(t), y(loaded)), 10) })"
    assert page.run(loaded) == 7
    assert page.run("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
    assert page.run("document.querySelector('img').naturalWidth") == 5
    assert page.run("fetch('data.json').then(r => r.json()).then(d => d.own)") is True
    assert page.run("fetch('data', {method: 'POST', headers: {'X-Own': '1'}, body: 'b'})"
                    ".then(r => r.text()).then(t => t.includes('posted b'))") is True
    assert page.run("new Promise(y => { const e = new EventSource('events');"
                    " e.onmessage = m => { e.close(); y(m.data) } })") == "tick"
    assert page.run("new Promise((y, n) => { const w = new WebSocket(location.href.replace('http', 'ws')"
                    ".replace('/app', '/ws')); w.onmessage = m => { w.close(); y(m.data) };"
                    " w.onerror = n })") == "hello"
    assert page.run("new Promise(y => { const w = new Worker(URL.createObjectURL(new Blob("
                    "['postMessage(9)']))); w.onmessage = m => y(m.data) })") == 9
    page.run("document.forms[0].submit()")
    eventually(lambda: page.run("document.title") == "posted a=1", 20, what="the answer to the form")
    assert page.cookies() == set()
