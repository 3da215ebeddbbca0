"""`opensandbox image build`: a Dockerfile run step by step in sandboxes, with a layer cache."""

import json
import os
import signal
import subprocess
import tarfile

import pytest

from support import rootfs

EVERY_INSTRUCTION = """\
# syntax=docker/dockerfile:1
ARG VERSION=1
FROM base:${VERSION} AS build
ARG WHO=world
ENV GREETING="hello ${WHO}" EMPTY=
SHELL ["/bin/sh", "-ec"]
WORKDIR /src
COPY *.txt lib/ ./
RUN cat one.txt two.txt > all \\
    # a comment among the lines
    && echo "$GREETING" >> all
RUN <<EOF
set -e
echo from a script >> all
EOF

FROM base:1
LABEL purpose=test "with blank"='a b'
EXPOSE 80 53/udp
COPY --from=build --chown=app:app --chmod=0640 /src/all /data/result
COPY ["one.txt", "/with blank/"]
ADD --chown=1000 packed.tar.gz /unpacked/
USER app
WORKDIR /home/app/work
RUN id -un > who && pwd >> who && echo $HOME >> who
ENTRYPOINT ["/bin/cat"]
CMD ["/data/result"]
"""


@pytest.fixture(scope="module")
def build_server(make_server, scratch):
    """A server with the image base:1 of a busybox."""
    server = make_server("build")
    tree = rootfs.busybox_tree(scratch / "build-base")
    server.cli("image", "import", rootfs.tar_of_tree(tree, scratch / "build-base.tar"), "base:1")
    return server


@pytest.fixture
def context(tmp_path):
    (tmp_path / "one.txt").write_text("one\n")
    (tmp_path / "two.txt").write_text("two\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/three.sh").write_text("three\n")
    (tmp_path / "inner").write_text("packed\n")
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "inner", "inner")
    return tmp_path


def build(server, context, dockerfile=None, *options, check=True):
    if dockerfile is not None:
        (context / "Dockerfile").write_text(dockerfile)
    return server.cli("image", "build", *options, context, check=check)


def counts(done):
    """Steps, and how many of them came from the cache."""
    words = [line for line in done.stderr.splitlines() if line.startswith("Built ")][0].split()
    return int(words[2]), int(words[4])


def left_behind(server):
    """What it is, whole: how it was left shows in what it says."""
    api = server.api()
    return [i for what in ("sandboxes", "snapshots") for i in api.get(f"/{what}").json["items"]]


def in_image(server, image, *command):
    return server.cli("run", "--image", image, "--", *command).stdout


def digests(server):
    return {i["reference"]: i["digest"] for i in server.api().get("/images").json["items"]}


def test_every_instruction(build_server, context):
    done = build(build_server, context, EVERY_INSTRUCTION, "-t", "full:1", "-t", "full:again", "-o", "json",
                 "--build-arg", "WHO=you")
    assert json.loads(done.stdout)["reference"] == "full:1"
    assert left_behind(build_server) == []
    assert in_image(build_server, "full:1", "cat", "/data/result") == "one\ntwo\nhello you\nfrom a script\n"
    assert in_image(build_server, "full:1", "stat", "-c", "%u:%g %a", "/data/result") == "1000:1000 640\n"
    assert in_image(build_server, "full:1", "cat", "/with blank/one.txt") == "one\n"
    assert in_image(build_server, "full:1", "cat", "/unpacked/inner") == "packed\n"
    assert in_image(build_server, "full:1", "cat", "/home/app/work/who") == "app\n/home/app/work\n/tmp\n"
    # What is run in it is its user, in its directory, without what other stages set.
    assert in_image(build_server, "full:1", "sh", "-c", "id -un; pwd; echo -$GREETING-") == "app\n/home/app/work\n--\n"
    shown = build_server.api().get("/images/inspect", query={"reference": "full:1"}).json["config"]
    assert shown["entrypoint"] == ["/bin/cat"] and shown["cmd"] == ["/data/result"]
    assert shown["labels"] == {"purpose": "test", "with blank": "a b"}
    assert sorted(shown["exposedPorts"]) == ["53/udp", "80/tcp"]
    assert shown["user"] == "app"
    assert digests(build_server)["full:again"] == digests(build_server)["full:1"]


def test_a_second_build_comes_from_the_cache(build_server, context):
    first = build(build_server, context, EVERY_INSTRUCTION, "-t", "cached:1")
    again = build(build_server, context, None, "-t", "cached:2")
    steps, cached = counts(again)
    assert steps == cached and steps == counts(first)[0]
    assert digests(build_server)["cached:1"] == digests(build_server)["cached:2"]
    steps, cached = counts(build(build_server, context, None, "-t", "cached:3", "--no-cache"))
    assert cached == 0


def test_a_changed_file_counts_from_its_copy_on(build_server, context):
    text = "FROM base:1\nRUN echo first > /a\nCOPY one.txt /b\nRUN cat /b > /c\nCOPY two.txt /d\n"
    build(build_server, context, text, "-t", "changed")
    (context / "one.txt").write_text("another\n")
    assert counts(build(build_server, context, None, "-t", "changed")) == (4, 1)
    assert in_image(build_server, "changed", "cat", "/c") == "another\n"
    # A file that is only touched is the same, one with another mode is not.
    os.utime(context / "one.txt", (1, 1))
    assert counts(build(build_server, context, None, "-t", "changed")) == (4, 4)
    (context / "two.txt").chmod(0o600)
    assert counts(build(build_server, context, None, "-t", "changed")) == (4, 3)


def test_an_argument_counts_where_it_is_declared(build_server, context):
    text = "FROM base:1\nRUN echo before\nARG V\nRUN echo $V > /v\n"
    build(build_server, context, text, "-t", "argument", "--build-arg", "V=1")
    done = build(build_server, context, None, "-t", "argument", "--build-arg", "V=2", "--build-arg", "UNUSED=x",
                 "--build-arg", "HTTP_PROXY=http://127.0.0.1:1")
    assert counts(done) == (2, 1)
    assert "UNUSED: no ARG takes it" in done.stderr and "HTTP_PROXY" not in done.stderr
    assert in_image(build_server, "argument", "cat", "/v") == "2\n"


def test_output_of_run_is_shown_and_a_failure_names_line_and_code(build_server, context):
    text = "FROM base:1\nRUN echo visible; echo too >&2\n\nRUN echo about to fail; exit 7\nRUN echo never\n"
    done = build(build_server, context, text, "-t", "failing", check=False)
    assert done.returncode == 1 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert "visible" in lines and "too" in lines and "never" not in lines
    assert f"{context}/Dockerfile:4: RUN: the command ended with exit code 7" in done.stderr
    assert left_behind(build_server) == []
    assert "failing:latest" not in digests(build_server)
    quiet = build(build_server, context, None, "--quiet", check=False).stderr.splitlines()
    assert "about to fail" in quiet and "visible" not in quiet


@pytest.mark.parametrize(
    "text, said",
    [
        ("FROM base:1\nRUN [\"/no/such\"]\n", "Dockerfile:2: RUN: the command did not start"),
        ("FROM base:1\nUSER nobodyhere\nRUN id\n", "Dockerfile:3: RUN: there is no user 'nobodyhere'"),
        ("FROM base:1\n\nCOPY nothing.txt /\n", "Dockerfile:3: COPY: 'nothing.txt'"),
        ("FROM base:1\nCOPY one.txt /bin\nCOPY one.txt /bin/busybox/x\n", "Dockerfile:3: COPY: "),
        ("FROM base:1\nCOPY --chown=nobodyhere one.txt /\n", "Dockerfile:2: COPY: "),
        ("FROM base:1\nCOPY --from=base:1 /no/such /x\n", "Dockerfile:2: COPY: --from=base:1 '/no/such'"),
        ("FROM nosuch.invalid/x:9\n", "Dockerfile:1: FROM: "),
        ("FROM host\nRUN true\n", "Dockerfile:1: FROM: "),
        ("FROM base:1\nVOLUME /x\n", "Dockerfile:2: VOLUME: this instruction is not supported"),
        ("FROM base:1\nADD https://example.org/x /x\n", "Dockerfile:2: ADD: 'https://example.org/x'"),
    ],
)
def test_errors_name_the_line_and_leave_nothing(build_server, context, text, said):
    done = build(build_server, context, text, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert left_behind(build_server) == []


def test_stages_that_the_target_does_not_need_are_left_out(build_server, context):
    text = ("FROM base:1 AS tools\nRUN echo tool > /tool\nFROM base:1 AS broken\nRUN exit 1\n"
            "FROM tools AS last\nCOPY --from=0 /to* /copied/\n")
    build(build_server, context, text, "-t", "stages")
    assert in_image(build_server, "stages", "cat", "/tool", "/copied/tool") == "tool\ntool\n"
    done = build(build_server, context, None, "--target", "broken", check=False)
    assert "Dockerfile:4: RUN" in done.stderr


def test_a_tree_keeps_modes_links_and_what_is_there(build_server, context):
    (context / "tree/sub").mkdir(parents=True)
    (context / "tree/run.sh").write_text("#!/bin/sh\necho ran\n")
    (context / "tree/run.sh").chmod(0o755)
    (context / "tree/link").symlink_to("run.sh")
    (context / "tree/sub/deep").write_text("x" * 300_000)
    text = ("FROM base:1\nRUN mkdir -p -m 700 /app/sub && echo old > /app/run.sh && echo kept > /app/kept\n"
            "COPY tree /app\nCOPY --from=base:1 /etc/passwd /etc/group /app/sub/\nCOPY one.txt /app/sub\n"
            "RUN ln -s /app /alias\nCOPY two.txt /alias\n")
    build(build_server, context, text, "-t", "tree")
    out = in_image(build_server, "tree", "sh", "-c",
                   "/app/link; cat /app/kept; readlink /app/link; stat -c '%a' /app/sub /app/run.sh; ls /app/sub; "
                   "wc -c < /app/sub/deep; cat /app/two.txt; readlink /alias")
    assert out == "ran\nkept\nrun.sh\n700\n755\ndeep\ngroup\none.txt\npasswd\n300000\ntwo\n/app\n"


def test_a_stage_keeps_owners_of_what_is_copied_from_it(build_server, context):
    text = ("FROM base:1 AS a\nRUN mkdir /d && echo x > /d/f && chown -R app:app /d && chmod 750 /d\n"
            "FROM base:1\nCOPY --from=a /d /e\nCOPY --from=a --chown=root /d /g\n")
    build(build_server, context, text, "-t", "owners")
    assert in_image(build_server, "owners", "stat", "-c", "%u %a", "/e", "/e/f", "/g/f") == "1000 750\n1000 644\n0 644\n"


def test_what_is_ignored_is_not_there(build_server, context):
    (context / ".dockerignore").write_text("# not these\n*.txt\n!two.txt\nlib\n")
    build(build_server, context, "FROM base:1\nCOPY . /all/\n", "-t", "ignored")
    listed = in_image(build_server, "ignored", "ls", "-A", "/all").split()
    assert "two.txt" in listed and "one.txt" not in listed and "lib" not in listed
    # Rules for this Dockerfile alone go before them.
    (context / "Other").write_text("FROM base:1\nCOPY . /all/\n")
    (context / "Other.dockerignore").write_text("two.txt\n")
    build(build_server, context, None, "-t", "ignored", "-f", context / "Other")
    listed = in_image(build_server, "ignored", "ls", "-A", "/all").split()
    assert "two.txt" not in listed and "one.txt" in listed


def test_an_image_without_any_program_is_built_from_nothing(build_server, context):
    text = ("FROM base:1 AS tools\nFROM scratch\nCOPY one.txt /one.txt\nCOPY --from=tools /bin/busybox /bin/cat\n"
            "ENTRYPOINT [\"/bin/cat\"]\nCMD [\"/one.txt\"]\n")
    build(build_server, context, text, "-t", "small")
    assert in_image(build_server, "small", "/bin/cat", "/one.txt") == "one\n"


def test_settings_alone_make_an_image(build_server, context):
    build(build_server, context, "FROM base:1\nENV MINE=yes\nUSER 1000\n", "-t", "settings")
    assert in_image(build_server, "settings", "sh", "-c", "echo $MINE; id -u") == "yes\n1000\n"
    quiet = build(build_server, context, None, "--quiet")
    assert quiet.stdout.strip() in digests(build_server).values()


def test_an_interrupt_leaves_nothing(build_server, context):
    (context / "Dockerfile").write_text("FROM base:1\nRUN echo begun; sleep 1000\n")
    process = subprocess.Popen(
        [build_server.executable, "image", "build", context], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=build_server.environment(), text=True)
    try:
        while process.stderr.readline() != "begun\n":
            assert process.poll() is None
        assert left_behind(build_server) != []
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted" in err and out == ""
    assert left_behind(build_server) == []


def test_images_of_steps_are_listed_only_when_asked_for(build_server, context):
    build(build_server, context, "FROM base:1\nRUN echo hidden\n", "-t", "visible")
    listed = build_server.cli("image", "list").stdout
    assert "visible:latest" in listed and "build-cache/" not in listed
    assert "build-cache/" in build_server.cli("image", "list", "--all").stdout


def test_the_cache_can_be_dropped_and_the_images_stay(build_server, context):
    text = "FROM base:1\nRUN echo stays > /stays\n"
    build(build_server, context, text, "-t", "stays")
    build_server.cli("image", "prune", "--build-cache")
    left = digests(build_server)
    assert "stays:latest" in left and not any(name.startswith("build-cache/") for name in left)
    assert in_image(build_server, "stays", "cat", "/stays") == "stays\n"
    assert counts(build(build_server, context, None, "-t", "stays")) == (1, 0)


def test_what_a_step_leaves_running_ends_with_it(build_server, context):
    text = "FROM base:1\nRUN sleep 1000 & echo started\nRUN ps > /running\n"
    build(build_server, context, text, "-t", "apart")
    assert "sleep 1000" not in in_image(build_server, "apart", "cat", "/running")
