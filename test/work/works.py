"""What people do in a sandbox, a row each: how it is installed, how it is used, and what comes of it.

A row is run as root and, where `user` says so, as an ordinary user of the sandbox. What is refused on
purpose has the words that its user reads; a refusal in other words, or none, is a failure.
"""

from dataclasses import dataclass, field

#: The kinds of native server: root's, an ordinary user's, and one whose sandboxes run under gVisor.
KINDS = ("root", "rootless", "gvisor")
DEBIAN = ("debian12", "debian13")


@dataclass(frozen=True)
class Work:
    name: str
    #: A script of /bin/sh that ends with 0 when the work is done.
    use: str
    #: Packages of the distribution.
    packages: tuple = ()
    images: tuple = DEBIAN
    #: Who does it inside.
    root: bool = True
    user: bool = False
    #: Whether `use` itself needs the world, beyond what the packages came from.
    network: bool = False
    #: A pattern in the words of the refusal, where it is refused for everybody.
    refused: str = ""
    #: The same for single kinds (or kind/who, as in "root/user"): a pattern, or "" where it works.
    differs: dict = field(default_factory=dict)
    #: Seconds after which it counts as hanging.
    seconds: int = 300

    def refusal(self, kind, who):
        for key in (f"{kind}/{who}", kind, who):
            if key in self.differs:
                return self.differs[key]
        return self.refused


def _rows():
    apt = "apt-get install -y -q --no-install-recommends hello && hello"
    yield Work("apt", apt, network=True)
    # Files of the host's /usr are nobody's in the sandboxes of an ordinary user.
    yield Work("apt in the image host", apt, images=("host",), network=True,
               differs={"rootless": "unable to create '/usr/bin/.*Permission denied"})
    yield Work("apk", "apk add --no-cache jq && echo '[6]' | jq '.[0]*7'", images=("alpine",), network=True)
    yield Work("adduser of busybox", "adduser -D somebody && su somebody -c id | grep somebody", images=("alpine",))
    yield from _users()
    yield from _languages()
    yield from _tools()
    yield from _services()
    yield from _browsers()
    yield from _debuggers()
    yield from _refusals()


def _users():
    yield Work("useradd, groupadd, usermod, userdel", """
        groupadd -r workers && useradd -m -g workers somebody && id somebody | grep workers
        usermod -s /bin/sh somebody && echo somebody:secret | chpasswd && userdel -r somebody && groupdel workers""")
    yield Work("adduser", "adduser --disabled-password --gecos '' nobody2 && deluser nobody2", packages=("adduser",))
    yield Work("su and runuser", "su nobody -s /bin/sh -c id | grep nobody && runuser -u nobody id")
    yield Work("sudo", "sudo -n id", packages=("sudo",), user=True, differs={"user": "no new privileges"})
    yield Work("setpriv", "setpriv --reuid=65534 --regid=65534 --clear-groups id -u | grep 65534")
    yield Work("tar with owners", """
        cd $(mktemp -d) && mkdir t && echo x >t/a && chown 33:44 t/a && chmod 4750 t/a && tar -cf t.tar t && rm -r t &&
        tar -xpf t.tar && stat -c '%u:%g %a' t/a | grep '33:44 4750'""")
    yield Work("dpkg-deb with fakeroot", """
        cd $(mktemp -d) && mkdir -p p/DEBIAN p/opt && echo x >p/opt/x &&
        printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: m <m@x>\\nDescription: p\\n' >p/DEBIAN/control &&
        fakeroot dpkg-deb -b p p.deb && dpkg-deb -c p.deb | grep root/root""", packages=("fakeroot",), user=True)


def _languages():
    yield Work("pip in a venv", """
        cd $(mktemp -d) && python3 -m venv v && v/bin/pip install -q six && v/bin/python -c 'import six; print(six.__version__)'""",
               packages=("python3-venv",), user=True, network=True)
    yield Work("uv", """
        cd $(mktemp -d) && python3 -m venv v && v/bin/pip install -q uv && v/bin/uv venv -q w &&
        VIRTUAL_ENV=$PWD/w v/bin/uv pip install -q --native-tls six && w/bin/python -c 'import six'""",
               packages=("python3-venv",), user=True, network=True)
    yield Work("python: processes, threads, asyncio", """python3 -c '
import asyncio, multiprocessing as m, concurrent.futures as c
print(sum(m.Pool(4).map(abs, range(-50, 50))), sum(c.ThreadPoolExecutor(8).map(abs, range(9))))
async def main():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname()); assert await r.read() == b""
asyncio.run(main())
from multiprocessing import shared_memory, Lock, Queue
s = shared_memory.SharedMemory(create=True, size=1 << 20); s.unlink(); Lock(); Queue()'""",
               packages=("python3",), user=True)
    yield Work("numpy", """
        cd $(mktemp -d) && python3 -m venv v && v/bin/pip install -q numpy &&
        v/bin/python -c 'import numpy as n; print(n.linalg.det(n.eye(300)))'""",
               packages=("python3-venv",), network=True)
    yield Work("ipykernel", """
        cd $(mktemp -d) && python3 -m venv v && v/bin/pip install -q jupyter_client ipykernel && v/bin/python -c '
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(); reply = client.execute_interactive("print(6*7)"); manager.shutdown_kernel()
assert reply["content"]["status"] == "ok"'""", packages=("python3-venv",), user=True, network=True)
    yield Work("npm", "cd $(mktemp -d) && npm init -y >/dev/null && npm install --no-audit --no-fund is-number && "
                      "node -e \"if (!require('is-number')(6)) process.exit(1)\"",
               packages=("nodejs", "npm"), user=True, network=True, seconds=600)
    yield Work("pnpm", "cd $(mktemp -d) && npm init -y >/dev/null && npm install --no-audit --no-fund pnpm@9 && "
                       "node_modules/.bin/pnpm --dir $(mktemp -d) add is-number",
               packages=("nodejs", "npm"), user=True, network=True)
    yield Work("node: workers and a server", """node -e '
const { Worker } = require("worker_threads");
new Worker("require(\\"worker_threads\\").parentPort.postMessage(42)", { eval: true }).on("message", (m) => {
  const s = require("http").createServer((q, r) => r.end(String(m))).listen(0, () =>
    fetch("http://127.0.0.1:" + s.address().port).then((r) => r.text()).then((t) => process.exit(t === "42" ? 0 : 1)));
});'""", packages=("nodejs",), user=True)
    yield Work("cargo", """
        cd $(mktemp -d) && cargo init -q --name w && cargo add -q itoa@1 && cargo run -q | grep Hello""",
               packages=("cargo",), images=("debian13",), user=True, network=True, seconds=600)
    yield Work("go", """
        cd $(mktemp -d) && go mod init w && go get github.com/google/uuid@v1.6.0 && printf 'package main
import ("fmt"; "github.com/google/uuid")
func main() { fmt.Println(uuid.New()) }' >m.go && go run .""", packages=("golang-go",), user=True, network=True, seconds=600)
    yield Work("maven and java", """
        cd $(mktemp -d) && mkdir -p src/main/java && echo 'class M { public static void main(String[] a) { System.out.println(42); } }' \
            >src/main/java/M.java && printf '<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId>
<version>1</version><properties><maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
</properties></project>' >pom.xml && mvn -q -B compile && java -cp target/classes M | grep 42""",
               packages=("maven", "default-jdk-headless"), user=True, network=True, seconds=900)
    yield Work("gcc, make, cmake", """
        cd $(mktemp -d) && echo 'int main(){return 0;}' >m.c && printf 'project(m C)\nadd_executable(m m.c)\n' >CMakeLists.txt &&
        cmake -S . -B b >/dev/null && make -j4 -C b >/dev/null && b/m""", packages=("gcc", "make", "cmake", "libc6-dev"), user=True)
    yield Work("ruby, perl, php", "ruby -e 'puts 42' && perl -e 'print 42' && php -r 'echo 42;'",
               packages=("ruby", "php-cli"), user=True)


def _tools():
    yield Work("git", """
        cd $(mktemp -d) && git init -q a && cd a && git -c user.name=n -c user.email=e commit -q --allow-empty -m m && cd .. &&
        git clone -q a b && git -C b log --oneline && git -C b worktree add -q ../c""", packages=("git",), user=True)
    yield Work("ssh-keygen", "cd $(mktemp -d) && ssh-keygen -q -t ed25519 -N '' -f k && ssh-keygen -l -f k", packages=("openssh-client",),
               user=True)
    yield Work("sqlite", "cd $(mktemp -d) && sqlite3 d 'pragma journal_mode=wal; create table t(a); insert into t values(42); select a from t' "
                         "| grep 42", packages=("sqlite3",), user=True)
    yield Work("curl and wget", "curl -sS -o /dev/null https://pypi.org/simple/six/ && wget -q -O /dev/null https://pypi.org/simple/six/",
               packages=("curl", "wget"), user=True, network=True)
    yield Work("rsync, zip, zstd, jq", """
        cd $(mktemp -d) && mkdir a && echo '[42]' >a/f && rsync -aHAX a/ b && zip -q z.zip b/f && zstd -q b/f && jq '.[0]' a/f | grep 42""",
               packages=("rsync", "zip", "zstd", "jq"), user=True)
    yield Work("tmux", "export TMUX_TMPDIR=$(mktemp -d); tmux new -d -s w 'sleep 9' && tmux ls && tmux kill-server", packages=("tmux",), user=True)
    yield Work("inotifywait", """
        cd $(mktemp -d) && { (sleep 1; touch f) & inotifywait -q -t 20 -e create .; }""",
               packages=("inotify-tools",), user=True)
    yield Work("locales and time zones", """
        echo 'en_US.UTF-8 UTF-8' >/etc/locale.gen && locale-gen >/dev/null && LC_ALL=en_US.UTF-8 locale charmap | grep UTF-8 &&
        TZ=Asia/Tokyo date +%Z | grep JST""", packages=("locales", "tzdata"))
    yield Work("chroot", "mkdir -p /tmp/r/bin && cp /bin/busybox /tmp/r/bin/ && chroot /tmp/r /bin/busybox echo inside",
               packages=("busybox-static",))
    yield Work("nice, renice, taskset, flock", "nice -n 5 true && renice -n 5 $$ && taskset -c 0 true && flock /tmp/l$(id -u) true",
               user=True)
    yield Work("ffmpeg", "cd $(mktemp -d) && ffmpeg -loglevel error -f lavfi -i testsrc=d=1:s=128x96 o.mp4 && ffprobe -v error o.mp4",
               packages=("ffmpeg",), user=True)
    yield Work("pandoc", "cd $(mktemp -d) && echo '# T' | pandoc -o o.docx && pandoc o.docx -t plain | grep T", packages=("pandoc",), user=True)
    yield Work("imagemagick", "cd $(mktemp -d) && convert -size 64x64 xc:red o.png && identify o.png", packages=("imagemagick",), user=True)


def _services():
    yield Work("postgres", """
        pg=$(ls -d /usr/lib/postgresql/*/bin) && d=$(mktemp -d) && chown postgres $d && runuser -u postgres -- sh -c "
        $pg/initdb -D $d/d >/dev/null && $pg/pg_ctl -D $d/d -o '-p 5599 -k $d' -w start >/dev/null &&
        psql -h $d -p 5599 -tc 'select 6*7' && $pg/pg_ctl -D $d/d -m fast stop" | grep 42""", packages=("postgresql",))
    yield Work("mariadb", """
        d=$(mktemp -d) && chown mysql $d && mariadb-install-db --user=mysql --datadir=$d >/dev/null 2>&1 &&
        (mariadbd --user=mysql --datadir=$d --socket=$d/s --pid-file=$d/p --skip-networking & echo $! >$d.pid) &&
        for i in $(seq 60); do mariadb -S $d/s -e 'select 6*7' 2>/dev/null | grep 42 && break; sleep 1; done && kill $(cat $d.pid)""",
               packages=("mariadb-server",), seconds=600)
    yield Work("redis", "redis-server --port 6399 --daemonize yes >/dev/null && sleep 1 && redis-cli -p 6399 bgsave && redis-cli -p 6399 set a 42 "
                        "&& redis-cli -p 6399 get a | grep 42 && redis-cli -p 6399 shutdown nosave", packages=("redis-server",), user=True)
    yield Work("nginx", "nginx && curl -sS http://127.0.0.1/ | grep -i nginx && nginx -s stop", packages=("nginx", "curl"))
    yield Work("memcached", "memcached -u nobody -p 11299 -d && sleep 1 && printf 'stats\\r\\nquit\\r\\n' | busybox nc 127.0.0.1 11299 | grep pid",
               packages=("memcached", "busybox-static"))
    yield Work("sshd", """
        mkdir -p /run/sshd ~/.ssh && chmod 700 ~/.ssh && k=$(mktemp -u) && ssh-keygen -q -t ed25519 -N '' -f $k && cat $k.pub >>~/.ssh/authorized_keys &&
        /usr/sbin/sshd -p 2299 && ssh -p 2299 -i $k -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@127.0.0.1 echo 42 | grep 42""",
               packages=("openssh-server", "openssh-client"))
    yield Work("cron", "echo '* * * * * root touch /tmp/cron-was-here' >/etc/cron.d/w && cron && for i in $(seq 75); do "
                       "[ -e /tmp/cron-was-here ] && break; sleep 1; done; [ -e /tmp/cron-was-here ]", packages=("cron",))


def _browsers():
    yield Work("chromium", "cd $(mktemp -d) && echo '<p id=a>six</p><script>a.textContent=6*7</script>' >p.html && HOME=$PWD chromium --headless "
                           "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync "
                           "--user-data-dir=$PWD/u --dump-dom file://$PWD/p.html 2>/dev/null | grep '>42<'",
               packages=("chromium",), user=True, seconds=600)
    yield Work("playwright", """
        cd $(mktemp -d) && python3 -m venv v && v/bin/pip install -q playwright && echo '<button onclick="this.textContent=6*7">b</button>' >p.html &&
        v/bin/python -c '
import os
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    b = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    g = b.new_page(); g.goto("file://" + os.getcwd() + "/p.html"); g.click("button"); assert g.inner_text("button") == "42"
    assert g.screenshot()[1:4] == b"PNG"; b.close()'""",
               packages=("chromium", "python3-venv"), images=("debian12",), user=True, network=True, seconds=600)
    yield Work("Xvfb", "Xvfb :77 -screen 0 320x240x24 & p=$!; for i in $(seq 50); do [ -e /tmp/.X11-unix/X77 ] && break; sleep .2; done; "
                       "DISPLAY=:77 xdpyinfo | grep 320x240; r=$?; kill $p; exit $r", packages=("xvfb", "x11-utils"))


def _debuggers():
    yield Work("gdb", "cd $(mktemp -d) && gdb -batch -ex 'break main' -ex run -ex bt --args /bin/true 2>&1 | grep -E 'exited normally|#0'",
               packages=("gdb",), user=True)
    yield Work("strace", "strace -f -e trace=execve /bin/true 2>&1 | grep execve", packages=("strace",), user=True)
    yield Work("perf", "perf stat true", packages=("linux-perf",), user=True, refused="(?i)permission|not permitted|not supported|No such file|denied")


def _refusals():
    yield Work("docker", "dockerd --data-root /tmp/d --exec-root /tmp/e --pidfile /tmp/p -H unix:///tmp/s", packages=("docker.io",),
               images=("debian12",), refused="(?i)permission denied|not permitted")
    yield Work("mount", "mount -t tmpfs none /mnt", refused="(?i)permission denied|not permitted|must be superuser", user=True)
    yield Work("unshare", "unshare -Ur true", refused="(?i)not permitted|No space left|denied", user=True)
    yield Work("bubblewrap", "bwrap --ro-bind / / true", packages=("bubblewrap",), refused="(?i)not permitted|No permissions|No space left|denied",
               user=True)
    yield Work("tcpdump", "timeout 5 tcpdump -c1 -i lo", packages=("tcpdump",), refused="(?i)not permitted|permission")
    yield Work("iptables", "iptables -A INPUT -j DROP", packages=("iptables",), refused="(?i)denied|not permitted|failed|not supported")
    yield Work("systemctl", "systemctl start cron", packages=("systemd", "cron"), refused="(?i)not been booted with systemd|Failed to connect to bus")
    yield Work("dmesg", "dmesg", refused="(?i)not permitted|denied", user=True)
    yield Work("clock", "date -s 2001-01-01", refused="(?i)not permitted")
    yield Work("host name", "hostname elsewhere", packages=("hostname",), refused="(?i)denied|not permitted|must be root")
    yield Work("modules", "insmod /dev/null", packages=("kmod",), refused="(?i)not permitted|Invalid|denied|could not")
    yield Work("mknod", "mknod /tmp/n b 8 0", refused="(?i)not permitted")


WORKS = tuple(_rows())
