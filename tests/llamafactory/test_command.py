"""Command lines that start LLaMA-Factory, and those that people paste."""

from pathlib import Path

import pytest
from support.fake_prefix import add_script, make_prefix

from tui.facts.errors import EXIT_USAGE, LlamaherdError
from tui.llamafactory.command import (
    PastedCommand,
    job_environment,
    launcher_words,
    named_environment,
    option_values,
    parse_command_line,
    pasted_uses_torchrun,
    process_count,
    replace_cli,
    torn_word,
    training_command,
    uses_torchrun,
)
from tui.llamafactory.environment import Environment, find_environment


def environment_in(prefix: Path) -> Environment:
    return find_environment(
        explicit=make_prefix(prefix), settings=None, environ={}, cwd=prefix, own_prefix=Path("/own"), roots=()
    )


class TestTrainingCommand:
    def test_it_is_an_argument_vector(self, tmp_path: Path) -> None:
        command = training_command(environment_in(tmp_path / "env"), Path("/j/config.yaml"), ["max_steps=3"])
        cli = str(tmp_path / "env" / "bin" / "llamafactory-cli")
        assert command == (cli, "train", "/j/config.yaml", "max_steps=3")

    def test_without_an_environment_it_is_what_one_would_type(self) -> None:
        assert training_command(None, Path("a.yaml")) == ("llamafactory-cli", "train", "a.yaml")


class TestWhatTorchrunGets:
    @pytest.mark.parametrize("word", ["/my jobs/config.yaml", "run_name=two words", "/j/a\tb.yaml"])
    def test_a_space_is_found(self, tmp_path: Path, word: str) -> None:
        environment = environment_in(tmp_path / "env")
        assert torn_word(launcher_words(environment, ["/j/config.yaml", word])) == word
        assert torn_word(launcher_words(environment, ["/j/config.yaml"])) is None

    def test_the_place_of_the_package_counts_too(self, tmp_path: Path) -> None:
        torn = torn_word(launcher_words(environment_in(tmp_path / "my env"), ()))
        assert torn is not None
        assert torn.startswith(str(tmp_path / "my env"))


@pytest.mark.parametrize(
    ("environ", "gpus", "torchrun", "processes"),
    [
        ({}, 0, False, 1),
        ({}, 1, False, 1),
        ({}, 2, True, 2),
        ({}, None, None, None),
        ({"FORCE_TORCHRUN": "1"}, 1, True, 1),
        ({"FORCE_TORCHRUN": "True"}, None, True, None),
        ({"FORCE_TORCHRUN": "Y"}, 4, True, 4),
        ({"FORCE_TORCHRUN": "yes"}, 1, False, 1),
        ({"FORCE_TORCHRUN": "on"}, 1, False, 1),
        ({"FORCE_TORCHRUN": "0"}, 2, True, 2),
        ({"FORCE_TORCHRUN": "1"}, 0, True, 0),
        ({"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "2"}, 0, True, 2),
        ({"NPROC_PER_NODE": "2"}, 1, False, 1),
        ({"NPROC_PER_NODE": "1"}, 4, True, 1),
        ({"NPROC_PER_NODE": "gpu"}, 4, True, 4),
        ({"NPROC_PER_NODE": "many"}, 4, True, None),
        ({"NPROC_PER_NODE": "²"}, 4, True, None),
        ({"NPROC_PER_NODE": "9" * 5000}, 4, True, None),
        ({"USE_RAY": "1"}, 4, False, 1),
        ({"USE_KT": "1"}, 4, False, 1),
        ({"USE_MCA": "1", "USE_RAY": "1"}, 1, True, 1),
    ],
)
def test_the_launchers_rules(
    environ: dict[str, str], gpus: int | None, torchrun: bool | None, processes: int | None
) -> None:
    assert uses_torchrun(environ, gpus) is torchrun
    assert process_count(environ, gpus) == processes


def test_what_a_job_gets() -> None:
    common = {"PYTHONUNBUFFERED": "1", "TQDM_MININTERVAL": "2"}
    saving = {"LLAMABOARD_ENABLED": "1", "LLAMABOARD_WORKDIR": "/jobs/j1"}
    assert job_environment("training", False, "/jobs/j1") == common | saving
    assert job_environment("training", True, "/jobs/j1") == common
    assert job_environment("training", None, "/jobs/j1") == common
    assert job_environment("service", False, "/jobs/j1") == common


class TestPastedTraining:
    def test_with_a_config(self) -> None:
        words = "CUDA_VISIBLE_DEVICES=0 FORCE_TORCHRUN=1 llamafactory-cli train x.yaml output_dir=o lr=1e-4"
        assert parse_command_line(words.split()) == PastedCommand(
            kind="training",
            launch="cli",
            argv=("llamafactory-cli", "train", "x.yaml", "output_dir=o", "lr=1e-4"),
            subcommand="train",
            config="x.yaml",
            overrides=("output_dir=o", "lr=1e-4"),
            output_dir="o",
            environment={"CUDA_VISIBLE_DEVICES": "0", "FORCE_TORCHRUN": "1"},
        )

    def test_with_options(self) -> None:
        words = "lmf train --stage sft --do_train True --output_dir /o/a --output_dir=/o/b --lora_rank 8"
        command = parse_command_line(words.split())
        assert (command.kind, command.config, command.overrides) == ("training", None, ())
        assert command.output_dir == "/o/b"

    @pytest.mark.parametrize(
        ("words", "launch", "config"),
        [
            ("lmf train x.yml", "cli", "x.yml"),
            ("python -m llamafactory.cli train x.json", "cli", "x.json"),
            ("/v/bin/python /v/bin/llamafactory-cli train x.yaml", "cli", "x.yaml"),
            ("python src/train.py x.yaml", "direct", "x.yaml"),
            ("python src/train_bash.py --stage sft", "direct", None),
            ("torchrun --nproc_per_node 2 /v/llamafactory/launcher.py x.yaml", "agent", "x.yaml"),
            ("torchrun --nproc_per_node=2 src/train.py x.yaml", "agent", "x.yaml"),
            ("accelerate launch --num_processes 2 src/train.py x.yaml", "agent", "x.yaml"),
            ("deepspeed --num_gpus 2 src/train.py --stage sft", "agent", None),
            ("env A=1 nohup llamafactory-cli train x.yaml", "cli", "x.yaml"),
            ("exec setsid lmf train x.yaml", "cli", "x.yaml"),
        ],
    )
    def test_every_way_to_train(self, words: str, launch: str, config: str | None) -> None:
        command = parse_command_line(words.split())
        assert (command.kind, command.launch, command.config) == ("training", launch, config)
        assert command.subcommand == "train"

    def test_output_dir_is_read_where_llamafactory_reads_it(self) -> None:
        options = ["lmf", "train", "--stage", "sft"]
        assert parse_command_line([*options, "output_dir=o"]).output_dir is None
        assert parse_command_line([*options, "--output_dir"]).output_dir is None
        assert parse_command_line([*options, "--output-dir", "o"]).output_dir == "o"
        assert parse_command_line(["lmf", "train", "x.yaml", "output_dir="]).output_dir is None

    def test_prefixes_go_and_their_assignments_stay(self) -> None:
        command = parse_command_line(["A=1", "env", "B=x=y", "C=", "nohup", "lmf", "train", "x.yaml", "D=1"])
        assert command.environment == {"A": "1", "B": "x=y", "C": ""}
        assert command.argv == ("lmf", "train", "x.yaml", "D=1")

    def test_one_quoted_word_is_a_command_line(self) -> None:
        pasted = "A='x y' llamafactory-cli train \\\n  --stage sft \\\n  --output_dir 'my out'\n"
        command = parse_command_line([pasted])
        assert command.argv == ("llamafactory-cli", "train", "--stage", "sft", "--output_dir", "my out")
        assert (command.output_dir, command.environment) == ("my out", {"A": "x y"})


@pytest.mark.parametrize(
    ("words", "subcommand"),
    [
        ("llamafactory-cli webui", "webui"),
        ("GRADIO_SERVER_PORT=6006 lmf webchat x.yaml", "webchat"),
        ("API_PORT=8000 llamafactory-cli api x.yaml", "api"),
        ("llamafactory-cli chat --model_name_or_path x", "chat"),
        ("llamafactory-cli export x.yaml", "export"),
        ("llamafactory-cli eval x.yaml", "eval"),
        ("python src/webui.py", "webui"),
        ("vllm serve Qwen/Qwen3-0.6B --port 8000", "vllm"),
        ("/v/bin/python /v/bin/vllm serve x", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server --model x", "vllm"),
    ],
)
def test_services(words: str, subcommand: str) -> None:
    command = parse_command_line(words.split())
    assert (command.kind, command.launch, command.subcommand) == ("service", "service", subcommand)


class TestRefused:
    @pytest.mark.parametrize("argv", [[], [""], ["  "], ["A=1"], ["env", "A=1"], ["nohup"]])
    def test_nothing_to_run(self, argv: list[str]) -> None:
        with pytest.raises(LlamaherdError) as caught:
            parse_command_line(argv)
        assert (caught.value.code, caught.value.exit_code) == ("command_empty", EXIT_USAGE)

    @pytest.mark.parametrize(
        ("argv", "why"),
        [
            (["bash", "-c", "llamafactory-cli train x.yaml"], "program"),
            (["python", "train.py", "x.yaml"], "program"),
            (["python", "-c", "import llamafactory"], "program"),
            (["python"], "program"),
            (["torchrun", "other.py", "src/train.py"], "program"),
            (["vllm", "bench", "serve"], "program"),
            (["uv", "run", "llamafactory-cli", "train", "x.yaml"], "program"),
            (["llamafactory-cli"], "subcommand"),
            (["llamafactory-cli", "trian", "x.yaml"], "subcommand"),
            (["llamafactory-cli", "version"], "subcommand"),
            (["lmf", "train", "x.yaml", "&&", "shutdown"], "shell"),
            (["lmf", "train", "x.yaml", ";", "shutdown"], "shell"),
            (["lmf train x.yaml > log 2>&1 &"], "shell"),
            (["lmf train x.yaml >log"], "shell"),
            (["lmf train x.yaml | tee log"], "shell"),
            (["lmf train $CONFIG"], "shell"),
            (["lmf train `ls`"], "shell"),
            (["lmf train 'x.yaml"], "quotes"),
        ],
    )
    def test_what_this_program_does_not_start(self, argv: list[str], why: str) -> None:
        with pytest.raises(LlamaherdError) as caught:
            parse_command_line(argv)
        assert (caught.value.code, caught.value.exit_code) == ("command_unsupported", EXIT_USAGE)
        assert caught.value.values["why"] == why

    def test_a_secret_is_not_repeated_and_a_flood_is_cut(self) -> None:
        with pytest.raises(LlamaherdError) as caught:
            parse_command_line(["serve", "--api-key", "hunter2", *["x" * 100] * 1000])
        assert "hunter2" not in str(caught.value)
        assert len(str(caught.value)) < 500

    def test_a_template_token_is_no_redirection(self) -> None:
        words = ["lmf", "train", "--stage", "sft", "--add_special_tokens", "<|end|>,<a>"]
        assert parse_command_line(words).argv == tuple(words)


class TestReplaceCli:
    def test_bare_names_get_the_found_environment(self, tmp_path: Path) -> None:
        environment = environment_in(tmp_path / "env")
        bin_folder = tmp_path / "env" / "bin"
        add_script(tmp_path / "env", "torchrun")
        cli = str(bin_folder / "llamafactory-cli")
        assert replace_cli(["llamafactory-cli", "train", "x"], environment) == (cli, "train", "x")
        assert replace_cli(["lmf", "webui"], environment) == (cli, "webui")
        assert replace_cli(["torchrun", "a"], environment) == (str(bin_folder / "torchrun"), "a")
        assert replace_cli(["python", "a"], environment) == (str(bin_folder / "python"), "a")

    def test_others_stay(self, tmp_path: Path) -> None:
        environment = environment_in(tmp_path / "env")
        for argv in (["vllm", "serve", "x"], ["/x/bin/llamafactory-cli", "train"], ["./lmf", "train"]):
            assert replace_cli(argv, environment) == tuple(argv)

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            ("/v/bin/llamafactory-cli train x.yaml", "/v/bin/llamafactory-cli"),
            ("./venv/bin/python src/train.py x.yaml", "venv/bin/python"),
            ("llamafactory-cli train x.yaml", None),
            ("python src/train.py x.yaml", None),
            ("/v/bin/torchrun src/train.py x.yaml", None),
        ],
    )
    def test_a_program_with_its_folder_names_the_environment(self, words: str, named: str | None) -> None:
        assert named_environment(parse_command_line(words.split())) == (Path(named) if named else None)


@pytest.mark.parametrize(
    ("words", "gpus", "expected"),
    [
        ("lmf train x.yaml", 1, False),
        ("lmf train x.yaml", 2, True),
        ("FORCE_TORCHRUN=1 lmf train x.yaml", 1, True),
        ("python src/train.py x.yaml", 2, False),
        ("torchrun src/train.py x.yaml", 1, True),
        ("lmf webui", 2, False),
    ],
)
def test_whether_a_pasted_command_uses_torchrun(words: str, gpus: int, expected: bool) -> None:
    assert pasted_uses_torchrun(parse_command_line(words.split()), {}, gpus) is expected


def test_options_are_settings() -> None:
    line = "--stage sft --do_train True --learning-rate=5e-5 --lora_rank 8 --eval_strategy no --plot_loss"
    assert option_values(line.split()) == {
        "stage": "sft",
        "do_train": True,
        "learning_rate": 5e-5,
        "lora_rank": 8,
        "eval_strategy": "no",
        "plot_loss": True,
    }
    pasted = parse_command_line(["llamafactory-cli", "train", "--stage", "sft"])
    assert pasted.options == {"stage": "sft"}
    assert parse_command_line(["llamafactory-cli", "train", "a.yaml", "stage=sft"]).options == {}
