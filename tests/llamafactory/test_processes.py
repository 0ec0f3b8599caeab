"""What a process is, by what it executes; the lines are those of real runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.llamafactory.processes import ProcessRole, classify, with_children

PY = "/root/LLaMA-Factory/.venv/bin/python3"
BIN = "/root/LLaMA-Factory/.venv/bin"
TRAIN = f"{PY} {BIN}/llamafactory-cli train x.yaml"
LAUNCHER = "/root/LLaMA-Factory/src/llamafactory/launcher.py"
AGENT = (
    f"{PY} {BIN}/torchrun --nnodes 1 --node_rank 0 --nproc_per_node 2"
    f" --master_addr 127.0.0.1 --master_port 29500 {LAUNCHER} x.yaml"
)
RANK = f"{PY} -u {LAUNCHER} x.yaml"


def role(
    line: str, comm: str = "", environ: dict[str, str] | None = None, parent: str | None = None
) -> ProcessRole:
    return classify(line.split(), comm, environ or {}, parent.split() if parent is not None else None)


class TestTraining:
    def test_one_process(self) -> None:
        expected = ProcessRole("train", "main", config="x.yaml", is_llamafactory=True)
        assert role(TRAIN, "llamafactory-cl") == expected
        assert role("lmf train x.yaml lr=1", "lmf") == expected
        assert role("python -m llamafactory.cli train x.yaml", "python3") == expected
        assert role("python src/train.py x.yaml", "python3") == expected
        assert role("llamafactory-cli train --stage sft").config is None

    def test_wrapper_by_its_environment_or_its_children(self) -> None:
        assert role(TRAIN, environ={"FORCE_TORCHRUN": "1"}).role == "wrapper"
        main, agent, worker = role(TRAIN), role(AGENT), role(TRAIN, "pt_data_worker", parent=TRAIN)
        assert with_children(main, [worker]) == main
        assert with_children(main, [worker, agent]).role == "wrapper"
        assert with_children(agent, [agent]) == agent

    def test_agent(self) -> None:
        expected = ProcessRole("train", "agent", config="x.yaml", is_llamafactory=True)
        assert role(AGENT, "pt_elastic", {"FORCE_TORCHRUN": "1"}, parent=TRAIN) == expected
        assert role(f"python -m torch.distributed.run --nproc_per_node 2 {LAUNCHER} x.yaml") == expected
        assert role("accelerate launch src/train.py x.yaml") == expected
        assert role("deepspeed --num_gpus 2 src/train.py --stage sft").role == "agent"
        other = role(f"torchrun other.py {LAUNCHER}")
        assert other == ProcessRole("other", "agent")

    @pytest.mark.parametrize(
        ("environ", "rank"),
        [
            ({"LOCAL_RANK": "1", "RANK": "5"}, 5),
            ({"LOCAL_RANK": "1"}, 1),
            ({"LOCAL_RANK": "0", "RANK": "x"}, 0),
            ({"LOCAL_RANK": "²", "RANK": "-1"}, None),
            ({"LOCAL_RANK": "9" * 5000}, None),
        ],
    )
    def test_rank(self, environ: dict[str, str], rank: int | None) -> None:
        expected = ProcessRole("train", "rank", rank=rank, config="x.yaml", is_llamafactory=True)
        assert role(RANK, "python3", environ, parent=AGENT) == expected

    def test_rank_whose_environment_is_hidden(self) -> None:
        found = classify(RANK.split(), "python3", None, AGENT.split())
        assert (found.role, found.rank) == ("rank", None)
        line = "python -u src/train.py --local_rank=3 --stage sft --deepspeed ds.json"
        assert classify(line.split(), "python", None).rank == 3

    def test_a_cluster_that_exports_rank_to_all_makes_no_ranks(self) -> None:
        cluster = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "10.0.0.1"}
        assert role(TRAIN, environ=cluster) == role(TRAIN)
        assert role("python src/train.py x.yaml", environ=cluster).role == "main"

    def test_workers_have_the_command_line_of_their_trainer(self) -> None:
        worker = role(TRAIN, "pt_data_worker", parent=TRAIN)
        assert (worker.kind, worker.role, worker.is_llamafactory) == ("data_worker", "data_worker", True)
        assert role(TRAIN, "pt_data_worker").role == "data_worker"
        pool = role(TRAIN, "llamafactory-cl", parent=TRAIN)
        assert (pool.kind, pool.role) == ("data_worker", "pool")
        of_rank = role(RANK, "pt_data_worker", {"LOCAL_RANK": "1", "RANK": "1"}, parent=RANK)
        assert (of_rank.role, of_rank.rank) == ("data_worker", 1)

    def test_workers_that_were_spawned(self) -> None:
        code = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"
        spawned = [PY, "-c", code, "--multiprocessing-fork"]
        assert classify(spawned, "python3", {}, TRAIN.split()).role == "pool"
        assert classify(spawned, "pt_data_worker", {}, TRAIN.split()).role == "data_worker"
        assert classify(spawned, "python3", {}, ["vllm", "serve", "x"]) == ProcessRole("vllm", "other")
        assert classify(spawned, "python3", {}, ["bash"]) == ProcessRole()
        tracker = [PY, "-c", "from multiprocessing.resource_tracker import main;main(5)"]
        assert classify(tracker, "python3", {}, TRAIN.split()).kind == "data_worker"
        assert classify([PY, "-c", "pass"], "python3", {}, TRAIN.split()) == ProcessRole()

    def test_data_workers_of_any_torch_program(self) -> None:
        assert role("python my.py", "pt_data_worker", parent="python my.py").role == "data_worker"
        assert role("python my.py", "python", parent="python my.py") == ProcessRole()


@pytest.mark.parametrize(
    ("line", "kind", "is_llamafactory"),
    [
        (f"{PY} {BIN}/llamafactory-cli webui", "webui", True),
        ("llamafactory-cli webchat x.yaml", "chat", True),
        ("llamafactory-cli chat x.yaml", "chat", True),
        ("lmf api x.yaml", "api", True),
        ("python src/webui.py", "webui", True),
        ("vllm serve Qwen/Qwen3-0.6B", "vllm", False),
        (f"{PY} {BIN}/vllm serve x", "vllm", False),
        ("python -m vllm.entrypoints.openai.api_server", "vllm", False),
    ],
)
def test_services(line: str, kind: str, is_llamafactory: bool) -> None:
    found = role(line)
    assert (found.kind, found.role, found.is_llamafactory) == (kind, "service", is_llamafactory)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("VLLM::EngineCore", "vllm"),
        ("VLLM::Worker_TP1", "vllm"),
        ("python -m ipykernel_launcher -f /root/kernel.json", "notebook"),
        ("/root/miniconda3/bin/python /root/miniconda3/bin/jupyter-lab --allow-root", "notebook"),
        ("jupyter lab", "notebook"),
        ("nvidia-smi -l 1", "monitor"),
        ("/usr/bin/nvtop", "monitor"),
        (f"{PY} {BIN}/nvitop", "monitor"),
        ("python -m nvitop", "monitor"),
        ("gpustat -i", "monitor"),
        ("python /root/.venv/bin/llamaherd status", "monitor"),
        ("python -m tui", "monitor"),
        ("/root/miniconda3/bin/python /root/miniconda3/bin/tensorboard --port 6007", "monitor"),
        ("autopanel serve --work-dir=/root/autodl-tmp", "monitor"),
        ("llamafactory-cli export x.yaml", "other"),
    ],
)
def test_other_kinds(line: str, kind: str) -> None:
    assert role(line).kind == kind


def test_this_programs_own_helpers() -> None:
    code = "import sys; sys.path[:0] = sys.argv[2:]; from tui.collect.gpu_child import main; main(1.0)"
    assert classify([PY, "-I", "-S", "-c", code, "1.0", "/site"], "python3", {}) == ProcessRole("monitor")
    boot = [PY, "-I", "-S", "-c", "import os, sys\nif os.fork(): os._exit(0)\n", "/site:/more"]
    assert classify([*boot, "tui.jobs.keeper", "/jobs/j1"], "x", {}) == ProcessRole("monitor", "keeper")
    assert classify([*boot, "tui.collect.gpu_sampler"], "x", {}) == ProcessRole("monitor")
    assert classify([*boot, "other.module", "tui.jobs.keeper"], "x", {}) == ProcessRole()
    assert classify([PY, "own.py", "/site", "tui.jobs.keeper"], "x", {}) == ProcessRole()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "vim train.yaml",
        "vim /root/LLaMA-Factory/src/llamafactory/launcher.py",
        "tail -f train.log",
        "grep llamafactory-cli",
        "watch -n 1 llamafactory-cli train x.yaml",
        "less llamafactory-cli",
        "cat x.yaml",
        "bash -c llamafactory-cli train x.yaml",
        "/bin/sh /root/llamafactory-cli train x.yaml",
        "tmux new-session llamafactory-cli train x.yaml",
        "ssh host llamafactory-cli train x.yaml",
        "sudo llamafactory-cli train x.yaml",
        "nohup-wrapper llamafactory-cli train",
        "timeout 3600 llamafactory-cli train x.yaml",
        "conda run -n lf llamafactory-cli train x.yaml",
        "uv run llamafactory-cli train x.yaml",
        "py-spy record -- python llamafactory-cli train x.yaml",
        "python -m pdb llamafactory-cli train x.yaml",
        "python -m pip install llamafactory",
        "python -c llamafactory-cli train x.yaml",
        "python other.py llamafactory-cli train x.yaml",
        "python train.py config.yaml",
        "python /root/my/launcher.py x.yaml",
        "python /root/notllamafactory/launcher.py x.yaml",
        "llamafactory-cli.bak train x.yaml",
        "node vllm.js serve",
        "ray::IDLE",
    ],
)
def test_what_merely_names_it(line: str) -> None:
    assert role(line, line.split()[0][:15] if line else "", parent="bash") == ProcessRole()


def test_a_shell_with_the_command_as_one_word() -> None:
    assert classify(["bash", "-c", TRAIN], "bash", {}) == ProcessRole()
    assert classify([TRAIN], "llamafactory-cl", {}) == ProcessRole()


def test_a_title_alone_proves_nothing() -> None:
    for comm in ("llamafactory-cl", "pt_elastic", "lmf", "VLLM::EngineCor"):
        assert classify(["sleep", "1"], comm, {}) == ProcessRole()


@pytest.mark.parametrize(
    "argv",
    [
        [],
        [""],
        ["", "", ""],
        ["x" * 1_000_000],
        ["/" * 1_000_000],
        ["python"] + ["-u"] * 100_000,
        ["python", "-" + "u" * 1_000_000],
        ["torchrun"] + ["--nnodes"] * 100_000,
        ["python", "x" * 1_000_000 + ".yaml"],
        ["llamafactory-cli", "train", "x" * 1_000_000 + ".yaml"],
        ["\udcff\udcfe", "\udc80"],
        ["python", "/bin/\udcff/llamafactory-cli\udcff", "train"],
    ],
    ids=lambda argv: f"{len(argv)}-{argv[0][:10]!a}" if argv else "empty",
)
def test_hostile_argv(argv: list[str]) -> None:
    found = classify(argv, "\udcff" * 15, None, argv)
    assert found.config is None
    assert found == classify(argv, "\udcff" * 15, None, list(argv))


words = st.text(max_size=10) | st.sampled_from(
    ["python", "-m", "llamafactory-cli", "train", "torchrun", "-c"]
)


@given(
    st.lists(words),
    st.text(max_size=15),
    st.none() | st.dictionaries(words, words),
    st.none() | st.lists(words),
)
def test_any_process_has_a_role(
    argv: list[str], comm: str, environ: dict[str, str] | None, parent: list[str] | None
) -> None:
    found = classify(argv, comm, environ, parent)
    assert found.rank is None or found.rank >= 0
