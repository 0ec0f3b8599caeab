"""Tests of the screen start in English, and leave it so."""

from collections.abc import Iterator

import pytest

from tui.text.translate import set_language


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    set_language("en")
    yield
    set_language("en")
