"""When a run evaluates and saves: LLaMA-Factory's arguments with the Trainer's defaults."""

from collections.abc import Mapping

from tui.facts.training import Schedule

_DEFAULT_STEPS = 500.0
"""transformers' default of both ``logging_steps`` and ``save_steps``."""
_DEFAULT_EPOCHS = 3.0


def schedule(arguments: Mapping[str, object]) -> Schedule:
    """The schedule that a training configuration asks for.

    ``eval_steps`` defaults to ``logging_steps``; any evaluation strategy also turns on the evaluation
    after the last step. Values may be text, as in a command line's ``key=value``.
    """
    evaluates = _word(arguments, "eval_strategy", _word(arguments, "evaluation_strategy", "no"))
    saves = _word(arguments, "save_strategy", "steps")
    logging_steps = _number(arguments, "logging_steps") or _DEFAULT_STEPS
    save_steps = _number(arguments, "save_steps")
    return Schedule(
        eval_steps=(_number(arguments, "eval_steps") or logging_steps) if evaluates == "steps" else None,
        save_steps=(_DEFAULT_STEPS if save_steps is None else save_steps or None)
        if saves == "steps"
        else None,
        eval_epochs=evaluates == "epoch",
        save_epochs=saves == "epoch",
        final_eval=evaluates in {"steps", "epoch"} or _word(arguments, "do_eval", "false") == "true",
        final_predict=_word(arguments, "do_predict", "false") == "true",
        epochs=_number(arguments, "num_train_epochs") or _DEFAULT_EPOCHS,
        max_steps=int(_number(arguments, "max_steps") or 0) or None,
        counts_padding=_word(arguments, "include_num_input_tokens_seen", "all") != "non_padding",
    )


def _word(arguments: Mapping[str, object], name: str, default: str) -> str:
    value = arguments.get(name)
    return default if value is None else str(value).lower()


def _number(arguments: Mapping[str, object], name: str) -> float | None:
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < float("inf") else None
