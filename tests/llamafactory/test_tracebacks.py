from tui.llamafactory.tracebacks import Raised, TracebackReader, rank_prefix


def read(text: str) -> list[Raised]:
    reader = TracebackReader()
    results = [reader.line(line)[1] for line in text.splitlines()]
    return [raised for raised in results if raised is not None]


TRACE = """Traceback (most recent call last):
  File "a.py", line 8, in <module>
    sys.exit(main())
             ^^^^^^
  File "b.py", line 1778, in training_step
    loss = x
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."""


def test_name_message_and_functions() -> None:
    assert read(TRACE) == [
        Raised(
            None,
            "torch.OutOfMemoryError",
            "CUDA out of memory. Tried to allocate 2.00 GiB.",
            ("<module>", "training_step"),
        )
    ]


def test_an_exception_without_a_message() -> None:
    assert [raised.short_name for raised in read(TRACE.rpartition("\n")[0] + "\nKeyboardInterrupt")] == [
        "KeyboardInterrupt"
    ]


def test_two_ranks_line_by_line() -> None:
    first, second = TRACE.splitlines(), TRACE.replace("training_step", "forward").splitlines()
    mixed = [
        line
        for pair in zip(first, second, strict=True)
        for line in (f"[rank0]: {pair[0]}", f"[rank1]: {pair[1]}")
    ]
    assert [(raised.rank, raised.functions[-1]) for raised in read("\n".join(mixed))] == [
        (0, "training_step"),
        (1, "forward"),
    ]


def test_lines_of_other_origin_are_passed_over() -> None:
    noise = "[INFO|trainer.py:1] 2026 >> text\nW1129 14:58:47.335000 27978 torch/x.py:1] closing\ninputs: x\n"
    noisy = TRACE.replace("  File", noise + "  File")
    assert read(noisy) == read(TRACE)


def test_chained_exceptions_come_one_by_one() -> None:
    chain = f"{TRACE}\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert [r.short_name for r in read(chain + TRACE.replace("OutOfMemoryError", "Other"))] == [
        "OutOfMemoryError",
        "Other",
    ]


def test_an_error_line_outside_a_traceback_is_none() -> None:
    assert read("ValueError: not raised here") == []


def test_a_traceback_that_never_ends_is_given_up() -> None:
    head = TRACE.rpartition("\n")[0]
    assert read(f"{head}\n" + "noise noise\n" * 500 + "ValueError: of something else") == []


def test_depth_and_ranks_are_bounded() -> None:
    deep = (
        "Traceback (most recent call last):\n" + '  File "a.py", line 1, in f\n' * 5000 + "RecursionError: x"
    )
    (raised,) = read(deep)
    assert len(raised.functions) <= 400
    reader = TracebackReader()
    for rank in range(1000):
        reader.line(f"[rank{rank}]: Traceback (most recent call last):")
    assert len(reader._open) <= 64


def test_rank_marks() -> None:
    assert rank_prefix("[rank1]: x") == (1, "x")
    assert rank_prefix("[default0]:x") == (0, "x")
    assert rank_prefix("[INFO|a] x") == (None, "[INFO|a] x")
