"""Outside text on one line of a report."""

from support.samples import EVIL

from tui.text.outside import outside


def test_harmless_masked_and_short() -> None:
    assert outside(EVIL, 20) == "evil 长长长长长长长长长长长长..."
    assert outside("a\n  b\t c ") == "a b c"
    assert outside("--api_key abc") == "--api_key ***"


def test_a_secret_at_the_limit_is_not_cut_in_half() -> None:
    text = "x" * 10 + " hf_" + "Ab1" * 12
    assert outside(text, 30) == "xxxxxxxxxx ***"
