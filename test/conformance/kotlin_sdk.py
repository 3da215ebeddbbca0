"""The published Kotlin SDK 1.0.0, unmodified, against our server: a Java program that uses it."""

import os
from pathlib import Path

import pytest

from support.shell import run

FOLDER = Path(__file__).parent / "kotlin"


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    directory = tmp_path_factory.mktemp("kotlin")
    run(
        "mvn", "-q", "-B", "-f", FOLDER / "pom.xml", "dependency:copy-dependencies",
        f"-DoutputDirectory={directory}", timeout=600,
    )
    return directory


def test_kotlin(server, libraries):
    done = run(
        "java", "-cp", f"{libraries}/*", FOLDER / "Sdk.java", check=False, timeout=180,
        env={
            **os.environ, "OPEN_SANDBOX_DOMAIN": server.address,
            "OPEN_SANDBOX_API_KEY": server.key, "IMAGE": server.image,
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("passed\n")
    left = server.api().get("/sandboxes", query={"metadata": "client=kotlin"}).json["items"]
    assert not left
