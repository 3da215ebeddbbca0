"""Root file systems of distributions, made once a machine and kept below build/."""

import os
from pathlib import Path

from support.server import ROOT
from support.shell import run

KEPT = ROOT / "build/work-images"
#: An image's name and the release of Debian that it is made of.
RELEASES = {"debian12": "bookworm", "debian13": "trixie"}
#: Authorities that this machine trusts beyond those of the distribution: what a proxy in front of the
#: registries signs with.
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
#: The same for Java, which reads no other store than its own.
JAVA_AUTHORITIES = Path("/etc/ssl/certs/java/cacerts")
JAVA_AUTHORITIES_INSIDE = "/etc/ssl/java-authorities"


def archive(name):
    """The tar of an image: made by mmdebstrap from where this machine's own packages come from."""
    KEPT.mkdir(parents=True, exist_ok=True)
    made = KEPT / f"{name}.tar"
    if not made.exists():
        partial = KEPT / f"{name}.partial.tar"
        try:
            run("mmdebstrap", "--variant=minbase", "--include=ca-certificates,procps,iproute2", "--aptopt=APT::Sandbox::User \"root\"",
                RELEASES[name], partial, timeout=1200)
            partial.rename(made)
        finally:
            partial.unlink(missing_ok=True)
    return made


def add(server, name, given):
    """Imports an image, but for the built-in one. `given` has archives by name that are not made here."""
    if name != "host":
        server.cli("image", "import", given.get(name) or archive(name), f"{name}:work", timeout=600)
    return name if name == "host" else f"{name}:work"


def trust(sandbox):
    """Gives the sandbox the authorities of this machine, as its owner would."""
    sandbox.agent.write("/etc/ssl/certs/ca-certificates.crt", AUTHORITIES.read_bytes())
    sandbox.agent.write(JAVA_AUTHORITIES_INSIDE, JAVA_AUTHORITIES.read_bytes())


VARIABLES = {
    "SSL_CERT_FILE": str(AUTHORITIES),
    "PIP_CERT": str(AUTHORITIES),
    "NODE_EXTRA_CA_CERTS": str(AUTHORITIES),
    "CARGO_HTTP_CAINFO": str(AUTHORITIES),
    "REQUESTS_CA_BUNDLE": str(AUTHORITIES),
    "MAVEN_OPTS": f"-Djavax.net.ssl.trustStore={JAVA_AUTHORITIES_INSIDE}",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    # The go command asks a server for sums that a closed network does not let through.
    **{name: os.environ[name] for name in ("GOPROXY", "GOSUMDB", "GOFLAGS") if name in os.environ},
}
