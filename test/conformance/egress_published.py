"""Our sidecar in the published server's hands: what that server tells it and asks of it works, with the
same tests of the published SDK."""

import pytest

from conformance.egress_sdk import (  # noqa: F401
    test_a_sandbox_without_a_policy_has_no_control, test_policy_after_pause_and_connect,
    test_policy_by_the_synchronous_client, test_rules_are_patched_and_deleted,
    test_the_policy_of_the_create_is_in_force, use_server_proxy,
)

pytestmark = pytest.mark.parametrize("egress_place", ["published"], indirect=True)
