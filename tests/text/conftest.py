"""The language is state of the process: every test here starts in English and leaves English."""

from collections.abc import Iterator

import pytest

from tui.text.translate import set_language


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    set_language("en")
    yield
    set_language("en")
