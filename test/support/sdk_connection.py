"""How the tests of the published Python SDK connect to a server."""

from datetime import timedelta

from opensandbox.config import ConnectionConfig


def config_for(server, use_server_proxy=False, kind=ConnectionConfig):
    """With time for a loaded machine: a DELETE that the SDK gives up and sends again is refused by the
    published server while its engine still carries out the first one."""
    return kind(domain=server.address, api_key=server.key, protocol="http",
                use_server_proxy=use_server_proxy, request_timeout=timedelta(seconds=90))
