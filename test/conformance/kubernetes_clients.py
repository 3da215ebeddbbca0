"""The published Python and JavaScript SDKs and `osb`, unmodified, before a real cluster: their tests of other
modules with another server. Left out is what the runtime refuses (pause, snapshots), and what needs more
processors than the node has."""

import pytest

from conformance import javascript_sdk
from conformance.javascript_sdk import program  # noqa: F401
from conformance.osb_cli import (  # noqa: F401
    id, osb, test_command_in_the_background, test_command_run_prints_the_bytes, test_sessions,
    test_sandbox_create_list_get_renew_endpoint_metrics_health_kill,
)
from conformance.python_sdk import (  # noqa: F401
    test_create_info_and_kill, test_files, test_metadata_patch_and_connect, test_metrics_and_renew,
    test_output_is_streamed_and_the_exit_code_known, test_run_options, test_synchronous_client,
    test_without_a_timeout_it_lives_until_killed, use_server_proxy,
)
from support.kubernetes.cluster import Cluster
from support.kubernetes.images import DEBIAN
from support.kubernetes.served import ClusterServer, Controller, apply_manifests

SPACE = "clients"
LACKING = ("pause and resume", "snapshots")


@pytest.fixture(scope="module")
def server(scratch):
    with Cluster(debian=True) as cluster:
        accounts = apply_manifests(cluster, SPACE)
        controller = Controller(cluster, scratch / "clients-controller", kubeconfig=accounts["controller"]).start()
        server = ClusterServer(scratch / "clients", cluster, SPACE, kubeconfig=accounts["server"])
        server.image = DEBIAN
        try:
            yield server.start()
        finally:
            server.destroy()
            controller.stop()


@pytest.mark.parametrize("by", ["direct", "proxy"])
@pytest.mark.parametrize("name", [name for name in javascript_sdk.NAMES if name not in LACKING])
def test_javascript(server, program, name, by):  # noqa: F811
    javascript_sdk.test_javascript(server, program, name, by)
