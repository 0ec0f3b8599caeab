import math

import pytest

from tui.llamafactory.metrics import block_value, eval_seconds, metric_point, metric_values


def test_numbers_of_both_versions() -> None:
    plain = metric_values("{'loss': 5.6702, 'grad_norm': 0.54, 'learning_rate': 5.4e-05, 'epoch': 0.11}")
    quoted = metric_values("x {'loss': '5.67', 'learning_rate': '5.387e+05', 'rewards/chosen': '-1'} y")
    assert plain == {"loss": 5.6702, "grad_norm": 0.54, "learning_rate": 5.4e-05, "epoch": 0.11}
    assert quoted == {"loss": 5.67, "learning_rate": 538700.0, "rewards/chosen": -1.0}


def test_nan_and_infinity() -> None:
    values = metric_values("{'loss': nan, 'grad_norm': 'inf', 'epoch': -inf}")
    assert math.isnan(values["loss"])
    assert values["grad_norm"] == math.inf
    assert values["epoch"] == -math.inf


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{'",
        "{'loss': 1.0",
        "{'task': {'name': 'Causal Language Modeling', 'type': 'text-generation'}}",
        "{'a': __import__('os').system('x')}",
        "{'loss': [1, 2]}",
    ],
)
def test_what_holds_no_numbers(text: str) -> None:
    assert metric_values(text) == {}


def test_seconds_of_several_evaluation_sets_add_up() -> None:
    assert eval_seconds({"eval_a_runtime": 2.0, "eval_b_runtime": 3.5, "eval_loss": 1.0}) == 5.5
    assert eval_seconds({"train_runtime": 2.0}) is None
    assert eval_seconds({"eval_runtime": math.nan}) is None
    assert eval_seconds({"eval_runtime": -1.0}) is None


def test_lines_of_a_closing_block() -> None:
    assert block_value("  eval_loss               =     5.2318") == ("eval_loss", 5.2318)
    assert block_value("  eval_runtime            = 0:00:02.80") == ("eval_runtime", 2.8)
    assert block_value("  total_flos               =        5GF") == ("total_flos", None)
    assert block_value("Figure saved at: x = y") is None


def test_a_point_keeps_what_is_known() -> None:
    point = metric_point({"loss": 1.0, "num_input_tokens_seen": math.inf, "epoch": 0.5}, step=7)
    assert (point.step, point.loss, point.epoch, point.tokens_seen) == (7, 1.0, 0.5, None)
