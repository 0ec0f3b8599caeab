from dataclasses import replace

import pytest

from tui.facts.training import Schedule
from tui.llamafactory.schedule import schedule


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, Schedule(save_steps=500)),
        ({"save_steps": 20, "eval_strategy": "steps", "eval_steps": 10}, Schedule(10, 20, final_eval=True)),
        ({"eval_strategy": "steps", "logging_steps": 5}, Schedule(5, 500, final_eval=True)),
        ({"evaluation_strategy": "steps", "eval_steps": "0.1"}, Schedule(0.1, 500, final_eval=True)),
        (
            {"eval_strategy": "epoch", "save_strategy": "epoch"},
            Schedule(eval_epochs=True, save_epochs=True, final_eval=True),
        ),
        ({"save_strategy": "no", "do_eval": True}, Schedule(final_eval=True)),
        ({"save_strategy": False, "do_predict": "true"}, Schedule(final_predict=True)),
        ({"save_steps": 0}, Schedule()),
        (
            {"save_steps": "many", "eval_strategy": "steps", "eval_steps": -1},
            Schedule(500, 500, final_eval=True),
        ),
        ({"save_steps": True, "eval_strategy": None}, Schedule(save_steps=500)),
    ],
)
def test_schedules(arguments: dict[str, object], expected: Schedule) -> None:
    assert schedule(arguments) == replace(expected, epochs=3.0)


def test_where_it_ends() -> None:
    found = schedule({"num_train_epochs": "2.5", "max_steps": 50})
    assert (found.epochs, found.max_steps) == (2.5, 50)
    assert schedule({"max_steps": -1}).max_steps is None


def test_tokens_are_counted_with_padding_unless_told_otherwise() -> None:
    assert schedule({"include_num_input_tokens_seen": True}).counts_padding
    assert not schedule({"include_num_input_tokens_seen": "non_padding"}).counts_padding
