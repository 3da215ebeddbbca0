from conformance.python_sdk import *
import pytest
pytestmark = pytest.mark.parametrize("server", ["published"], indirect=True)
