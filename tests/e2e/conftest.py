"""What the tests with real LLaMA-Factory share."""

import pytest
from support.real_llamafactory import NoPythonError, RealLlamaFactory, provide_llamafactory


@pytest.fixture(scope="session")
def llamafactory() -> RealLlamaFactory:
    """Real LLaMA-Factory with a tiny model; the first run on a machine takes minutes to make it."""
    try:
        return provide_llamafactory()
    except NoPythonError as reason:
        pytest.skip(str(reason))
