"""What an argument vector executes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.llamafactory.argv import Execution, agent_target, cli_subcommand, config_argument, execution


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", Execution("")),
        ("vim train.yaml", Execution("vim", ("train.yaml",))),
        ("/v/bin/llamafactory-cli train x.yaml", Execution("/v/bin/llamafactory-cli", ("train", "x.yaml"))),
        ("python /v/bin/lmf train", Execution("/v/bin/lmf", ("train",), "python")),
        ("/v/bin/python3.11 -u -X dev -W ignore a.py b", Execution("a.py", ("b",), "/v/bin/python3.11")),
        ("python -uIWignore a.py", Execution("a.py", (), "python")),
        ("python -Xdev a.py -m x", Execution("a.py", ("-m", "x"), "python")),
        ("python -m llamafactory.cli train", Execution("", ("train",), "python", module="llamafactory.cli")),
        ("python -Im tui status", Execution("", ("status",), "python", module="tui")),
        ("python -mtui", Execution("", (), "python", module="tui")),
        ("python -m", Execution("", (), "python", module="")),
        ("python -c pass llamafactory-cli", Execution("", ("llamafactory-cli",), "python", code="pass")),
        ("python --check-hash-based-pycs always a.py", Execution("a.py", (), "python")),
        ("python - a", Execution("-", ("a",), "python")),
        ("python", Execution("", (), "python")),
        ("python -W", Execution("", (), "python")),
        ("pythonic llamafactory-cli", Execution("pythonic", ("llamafactory-cli",))),
    ],
)
def test_execution(words: str, expected: Execution) -> None:
    assert execution(words.split()) == expected


@pytest.mark.parametrize(
    ("words", "program", "module", "arguments"),
    [
        ("torchrun --nnodes 1 --nproc_per_node 2 l.py x.yaml", "l.py", None, ("x.yaml",)),
        ("torchrun --nproc-per-node=2 --standalone l.py --a b", "l.py", None, ("--a", "b")),
        ("python -m torch.distributed.run --nproc_per_node 2 -m pkg.train x", "", "pkg.train", ("x",)),
        ("accelerate launch --num_processes 2 --multi_gpu src/train.py x", "src/train.py", None, ("x",)),
        ("deepspeed --num_gpus 2 src/train.py --deepspeed z", "src/train.py", None, ("--deepspeed", "z")),
        ("torchrun", "", None, ()),
        ("torchrun --nnodes", "", None, ()),
    ],
)
def test_what_an_agent_starts(
    words: str, program: str, module: str | None, arguments: tuple[str, ...]
) -> None:
    assert agent_target(execution(words.split())) == Execution(program, arguments, module=module)


@pytest.mark.parametrize("words", ["accelerate config", "python torchrunner.py x", "grep torchrun x.py"])
def test_what_is_no_agent(words: str) -> None:
    assert agent_target(execution(words.split())) is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("lmf", ("", ())),
        ("llamafactory-cli webui --x", ("webui", ("--x",))),
        ("python src/webui.py", ("webui", ())),
        ("python /x/LLaMA-Factory/src/api.py a.yaml", ("api", ("a.yaml",))),
        ("python /x/mysrc/api.py", None),
        ("/x/llamafactory-cli.sh train", None),
    ],
)
def test_the_subcommand(words: str, expected: tuple[str, tuple[str, ...]] | None) -> None:
    assert cli_subcommand(execution(words.split())) == expected


def test_only_the_first_argument_can_be_the_config() -> None:
    assert config_argument(("x.yaml", "y.yaml")) == "x.yaml"
    assert config_argument(("--stage", "x.yaml")) is None
    assert config_argument(("x.txt",)) is None
    assert config_argument(("x" * 5000 + ".yaml",)) is None
    assert config_argument(()) is None


@given(st.lists(st.text(max_size=20) | st.sampled_from(["python", "-m", "-c", "torchrun", "--a", "lmf"])))
def test_nothing_breaks_it(argv: list[str]) -> None:
    run = execution(argv)
    assert len(run.arguments) <= len(argv)
    agent_target(run)
    cli_subcommand(run)
