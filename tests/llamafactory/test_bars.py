import pytest

from tui.llamafactory.bars import BarText, seconds_per_step, split_bars


@pytest.mark.parametrize(
    ("text", "bar"),
    [
        (" 11%|█         | 5/45 [00:18<02:24,  3.62s/it]", BarText("", 5, 45, 18.0, b"3.62s/it")),
        ("  0%|          | 0/45 [00:00<?, ?it/s]", BarText("", 0, 45, 0.0, b"?it/s")),
        (" 50%|#####     | 9/18 [1:02:03<25:00:00, 7.01s/it]", BarText("", 9, 18, 3723.0, b"7.01s/it")),
        (" 47% 42/90 [00:00<00:00, 362.45it/s]", BarText("", 42, 90, 0.0, b"362.45it/s")),
        (
            "Running tokenizer on dataset (num_proc=2):  50%|##  | 90/180 [00:01<00:01, 71.47 examples/s]",
            BarText("Running tokenizer on dataset (num_proc=2)", 90, 180, 1.0, b"71.47 examples/s"),
        ),
        (
            "Generating train split: 200 examples [00:00, 2182.48 examples/s]",
            BarText("Generating train split", 200, None, 0.0),
        ),
        ("  5%|▌  | 2/40 [00:00<00:04,  4.17it/s]\x1b[A", BarText("", 2, 40, 0.0, b"4.17it/s", nested=True)),
        ("  5%|▌  | 2/40 [00:00<00:04, 4.17it/s, loss=1.5]", BarText("", 2, 40, 0.0, b"4.17it/s")),
    ],
)
def test_forms_of_a_bar(text: str, bar: BarText) -> None:
    assert list(split_bars(text.encode())) == [bar]


def test_what_is_glued_to_a_bar_is_told_apart() -> None:
    glued = b"begun 44%|##| 20/45 [01:07<01:31,  3.64s/it][INFO|trainer.py:4643] 2026 >> "
    before, bar, after = split_bars(glued)
    assert before == b"begun"
    assert isinstance(bar, BarText)
    assert bar.done == 20
    assert after == b"[INFO|trainer.py:4643] 2026 >> "


@pytest.mark.parametrize("text", [b"100% sure", b"5%|", b"5%|##| x/45 [00:01<00:02, 1it/s]", b"   ", b""])
def test_what_is_no_bar(text: bytes) -> None:
    assert not [piece for piece in split_bars(text) if isinstance(piece, BarText)]


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("Running tokenizer on dataset (num_proc=2)", "tokenize"),
        ("Loading checkpoint shards", "load"),
        ("Loading weights", "load"),
        ("Converting format of dataset", "dataset"),
        ("model.safetensors", None),
    ],
)
def test_the_description_tells_the_kind(description: str, kind: str | None) -> None:
    assert BarText(description, 1, 2, 0.0).described_kind == kind


def test_rates() -> None:
    assert seconds_per_step(b"3.62s/it") == 3.62
    assert seconds_per_step(b"4.00it/s") == 0.25
    assert seconds_per_step(b"?it/s") is None
    assert seconds_per_step(b"0.00it/s") is None
    assert seconds_per_step(b"71.47 examples/s") is None
