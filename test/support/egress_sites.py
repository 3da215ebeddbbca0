"""Sandboxes under egress control, in every way that there is one, behind one interface; and one that
nothing controls, to show that what they try would arrive."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

from support.client import Http
from support.server import EXECUTABLE
from support.shell import eventually, run

PROBE = Path(__file__).with_name("egress_probe.py")
TOKEN = "token-of-the-tests"


def rule(target=None, action="allow", ports=None):
    """Without a target the ports of every address."""
    made = {"action": action, "target": target, "ports": ports}
    return {name: value for name, value in made.items() if value is not None}


class Background:
    """An attempt that goes on while other things are done."""

    def __init__(self, site, attempt):
        number = next(site.numbers)
        self.site = site
        self.stop_file, self.ready_file = (f"{site.tmp}/{w}-{number}" for w in ("stop", "ready"))
        self.outcome = None
        self.attempt = {**attempt, "stop": self.stop_file, "ready": self.ready_file}
        self.thread = threading.Thread(target=self._work)

    def _work(self):
        try:
            self.outcome = self.site.probe(self.attempt)
        except BaseException as error:
            self.outcome = error

    def __enter__(self):
        self.thread.start()
        eventually(lambda: self.outcome is not None or self.site.exists(self.ready_file), 20, 0.05,
                   f"the beginning of {self.attempt}")
        assert self.outcome is None, self.outcome
        return self

    def finish(self):
        self.site.touch(self.stop_file)
        self.thread.join(60)
        assert isinstance(self.outcome, dict), self.outcome
        return self.outcome

    def __exit__(self, *_):
        if self.thread.is_alive():
            self.site.touch(self.stop_file)
            self.thread.join(60)


class Site:
    """A sandbox and what controls it. `raw` tells whether its root may send raw packets."""

    name = None
    enforced = True
    raw = False
    tmp = "/tmp"
    has_ipv6 = True
    #: Whether nobody enforces between kill() and revive(), or somebody else sees to that at once.
    dead_for_a_while = True
    #: Names that every policy allows besides.
    always = ()
    #: The operator's settings of what controls it, by their variables.
    variables = {}

    def __init__(self, internet):
        self.internet = internet
        self.numbers = iter(range(1 << 30))

    # What goes on inside.

    def run(self, *argv):
        """What a program wrote that root inside runs; it must succeed."""
        raise NotImplementedError

    def probe(self, *attempts):
        """Makes attempts (support/egress_probe.py): the outcome, or all if there are several."""
        outcomes = json.loads(self.run("python3", self.program, json.dumps(attempts)))
        return outcomes[0] if len(outcomes) == 1 else outcomes

    def background(self, do, **attempt):
        return Background(self, {"do": do, **attempt})

    def touch(self, path):
        self.run("touch", path)

    def exists(self, path):
        return self.run("sh", "-c", f"test -e {path} && echo yes || true").strip() == "yes"

    def tcp(self, host, port=80, **options):
        return self.probe({"do": "tcp", "host": host, "port": port, **options})

    def udp(self, host, port=7, **options):
        return self.probe({"do": "udp", "host": host, "port": port, **options})

    def dns(self, name, kind="A", **options):
        return self.probe({"do": "dns", "name": name, "type": kind, **options})

    # What controls it.

    api = None

    def policy(self, *rules, default="deny"):
        """Sets the whole policy."""
        reply = self.api.post("/policy", {"defaultAction": default, "egress": [*rules, *map(rule, self.always)]})
        assert reply.status == 200, reply
        return reply.json

    def allow(self, *targets):
        return self.policy(*map(rule, targets))

    def last_denial(self):
        return self.api.get("/policy/denials", query={"limit": 1000, "since": 0}).json["next"]

    def denials(self, since=0):
        reply = self.api.get("/policy/denials", query={"since": since, "limit": 1000})
        assert reply.status == 200, reply
        return reply.json["denials"]

    def wait_denied(self, since=0, **wanted):
        """Waits for a record of a refusal with these members."""
        def found():
            return next((d for d in self.denials(since)
                         if all(d.get(key) == value for key, value in wanted.items())), None)

        return eventually(found, 10, 0.05, f"a denial {wanted} in {self.denials(since)}")

    def kill(self):
        """Ends what enforces, as nobody should."""
        raise NotImplementedError

    def revive(self):
        """Has it enforce again."""
        raise NotImplementedError

    def lifetimes(self, address):
        """How long this address stays open, in seconds: of each entry in the packet filter."""
        raise NotImplementedError

    def identity(self):
        """By which name it stands in logs."""
        raise NotImplementedError

    def log_text(self):
        """What controls it has logged."""
        raise NotImplementedError


class Bare(Site):
    """A namespace and nothing more: where all that is tried arrives."""

    name = "open"
    enforced = False
    raw = True

    def __init__(self, internet):
        super().__init__(internet)
        number = next(internet.numbers)
        self.four, self.gateway4 = f"10.222.{number}.2", f"10.222.{number}.1"
        self.six, self.gateway6 = f"2001:db8:ee{number:02x}::2", f"2001:db8:ee{number:02x}::1"
        self.namespace = f"osbt{os.getpid()}{self.name[0]}"
        self.tmp = internet.directory / self.name
        self.tmp.mkdir()
        self.program = PROBE

    def __enter__(self):
        run("ip", "netns", "add", self.namespace)
        try:
            self._netns("sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647",
                        "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0",
                        "net.ipv6.conf.default.accept_dad=0")
            run("ip", "-n", self.namespace, "link", "set", "lo", "up")
            self.internet.link(self.internet.host, f"to-{self.name}", f"{self.gateway4}/24",
                               f"{self.gateway6}/64", self.namespace, "eth0", f"{self.four}/24",
                               f"{self.six}/64")
            for option, gateway in (("-4", self.gateway4), ("-6", self.gateway6)):
                run("ip", "-n", self.namespace, option, "route", "add", "default", "via", gateway)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        pass

    def __exit__(self, *_):
        run("ip", "-n", self.internet.host, "link", "del", f"to-{self.name}", check=False)
        run("ip", "netns", "del", self.namespace, check=False)

    def _netns(self, *argv):
        return run("ip", "netns", "exec", self.namespace, *argv).stdout

    def _capabilities(self):
        return []

    def _entering(self, before=":"):
        """Becomes a command in the namespace, with its resolver."""
        script = (f"{before} && mount --bind {self.internet.resolv_conf} /etc/resolv.conf && "
                  'exec "$@"')
        return ["nsenter", f"--net=/run/netns/{self.namespace}", "unshare", "--mount", "sh", "-c",
                script, "sh"]

    def run(self, *argv):
        return run(*self._entering(), *self._capabilities(), *argv, timeout=120).stdout

    def touch(self, path):
        Path(path).touch()

    def exists(self, path):
        return Path(path).exists()


class Sidecar(Bare):
    """`opensandbox egress` in a namespace, as beside a container: the sandbox's root has neither
    CAP_NET_ADMIN nor CAP_NET_RAW."""

    name = "sidecar"
    raw = False
    without = "-net_admin,-net_raw"

    def __init__(self, internet):
        super().__init__(internet)
        self.process = None
        self.log = internet.directory / f"{self.name}.log"
        self.group = _unified_groups() / f"osb-test-{os.getpid()}-{self.name}"

    def _capabilities(self):
        return ["setpriv", f"--bounding-set={self.without}", f"--inh-caps={self.without}"]

    def start(self):
        self.group.mkdir()
        self.api = Http(f"{self.four}:18080", headers={"OPENSANDBOX-EGRESS-AUTH": TOKEN})
        self.revive()

    def revive(self):
        # In a control group of its own, as a container has.
        environment = {"PATH": os.environ["PATH"], "OPENSANDBOX_EGRESS_MODE": "dns+nft",
                       "OPENSANDBOX_EGRESS_TOKEN": TOKEN, "OPENSANDBOX_EGRESS_SANDBOX_ID": "one",
                       "OPENSANDBOX_EGRESS_POLICY_FILE": str(self.internet.directory / f"{self.name}.json"),
                       **self.variables}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._entering(f"echo $$ > {self.group}/cgroup.procs"), EXECUTABLE, "egress"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        eventually(self._healthy, 30, 0.02, "the sidecar's readiness")

    def _healthy(self):
        assert self.process.poll() is None, f"the sidecar ended:\n{self.log.read_text()}"
        try:
            return self.api.get("/healthz").status == 200
        except OSError:
            self.api.close()
            return False

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.api.close()

    def identity(self):
        return "one"

    def log_text(self):
        return self.log.read_text(errors="replace")

    def lifetimes(self, address):
        return lifetimes_in(self._netns("nft", "-j", "list", "ruleset"), address)

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.api:
            self.api.close()
        super().__exit__()
        if self.group.exists():
            eventually(lambda: not (self.group / "cgroup.procs").read_text(), 10, 0.05, "its end")
            self.group.rmdir()


class SidecarOfMany(Sidecar):
    """The same where containers keep CAP_NET_RAW, as engines give it to them."""

    name = "netraw"
    raw = True
    without = "-net_admin"


def _unified_groups():
    for line in Path("/proc/self/mounts").read_text().splitlines():
        fields = line.split()
        if fields[2] == "cgroup2":
            return Path(fields[1])
    raise AssertionError("there is no unified hierarchy of control groups")


def lifetimes_in(ruleset, address):
    """Of the entries for this address in the packet filter's sets of what was learned."""
    lifetimes = []
    for item in json.loads(ruleset)["nftables"]:
        learned = item.get("set", {})
        if not learned.get("name", "").startswith("learned"):
            continue
        for entry in learned.get("elem", []):
            value = entry["elem"]["val"]
            parts = value["concat"] if isinstance(value, dict) and "concat" in value else [value]
            if address in parts:
                lifetimes.append(entry["elem"]["expires"])
    return lifetimes
