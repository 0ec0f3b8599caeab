"""How good the estimates are: steps against recorded plans, memory against measured peaks, and their speed.

Run it alone: ``python tests/bench/estimate.py``. ``--record`` first makes the recordings of plans again with
real LLaMA-Factory, which takes two minutes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import yaml  # noqa: E402
from support.measured_peaks import PEAKS, MeasuredPeak  # noqa: E402
from support.plan_cases import CASES_FILE, PlanCase, load_cases, write_datasets  # noqa: E402
from support.real_llamafactory import (  # noqa: E402
    RealLlamaFactory,
    provide_llamafactory,
    run_environment,
)

from tui.facts.memory import ByteRange  # noqa: E402
from tui.facts.steps import Bound  # noqa: E402
from tui.llamafactory.config import load_config, resolve  # noqa: E402
from tui.llamafactory.datasets import count_rows  # noqa: E402
from tui.llamafactory.steps import count_steps  # noqa: E402

GIB = 1 << 30
NOTE = """\
  Of the lengths only the longest of the last two was published; an evaluation is counted only for them,
  whose peak was sampled to the end. With every sample at the limit the range is narrow and misses: the
  runs with liger show some 0.3 GiB more than equal batches leave in the allocator's cache, and the run
  with ZeRO-3 shows 6 GiB less than batches of 3 x 2048 need, so its batches were shorter when it was read."""
BASE: dict[str, Any] = {"stage": "sft", "dataset": "sums", "cutoff_len": 128, "dataset_dir": "data"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="run real LLaMA-Factory and record its plans")
    arguments = parser.parse_args()
    if arguments.record:
        record()
    steps()
    memory()


def steps() -> None:
    """One line for each recorded training."""
    cases = load_cases()
    for version in dict.fromkeys(case.transformers for case in cases):
        print(f"steps, as printed with transformers {version}")
        verdicts = [step_line(case) for case in cases if case.transformers == version]
        print(f"  {verdicts.count('equal')} of {len(verdicts)} equal, the others bounded with their reason\n")


def step_line(case: PlanCase) -> str:
    """What was printed and what is estimated; says and returns how they agree."""
    total, printed = count(case), case.printed["total_steps"]
    if total is None:
        verdict, estimated = "unknown", "-"
    elif total.exact:
        verdict, estimated = "equal" if total.low == printed else "WRONG", str(total.low)
    else:
        verdict = "inside" if total.low <= printed <= total.high else "WRONG"
        estimated = f"{total.low} - {total.high}"
    print(f"  {case.name:42} {case.ranks} cards  printed {printed:4}  estimated {estimated:9}  {verdict}")
    return verdict


def count(case: PlanCase) -> Bound | None:
    """The estimated total of one case."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_datasets(case, folder / "data")
        values = {key: value for key, value in {**BASE, **case.values}.items() if value is not None}
        (folder / "train.yaml").write_text(yaml.safe_dump(values))
        config = resolve(load_config(folder / "train.yaml"), folder)
        return count_steps(config, count_rows(config), world=case.ranks, transformers=case.transformers).total


def memory() -> None:
    """One line for each measured peak, and again as if every sample had the limit's length."""
    print("memory, GiB; measured on real cards")
    heads = f"{'measured':>8}  {'needed':>13}  {'likely reserved':>15}  inside  seconds"
    print(f"  {'training':42} {heads}  rule GB")
    for peak in PEAKS:
        line(peak, peak.name)
        if peak.longest is None:
            line(replace(peak, full=True), "  the same, every sample at the limit")
    print(NOTE)


def line(peak: MeasuredPeak, name: str) -> None:
    began = time.monotonic()
    result = peak.estimate()
    seconds = time.monotonic() - began
    if result.reserved is None or result.needed is None or result.rule is None:
        raise SystemExit(f"{name}: no estimate")
    inside = "yes" if result.reserved.low <= peak.measured <= result.reserved.high else "no"
    print(
        f"  {name:42} {peak.measured / GIB:8.2f}  {gib(result.needed):>13}  {gib(result.reserved):>15}"
        f"  {inside:>6}  {seconds:7.2f}  {result.rule.total:7.1f}"
    )


def gib(size: ByteRange) -> str:
    return f"{size.low / GIB:.2f} - {size.high / GIB:.2f}"


def record() -> None:
    """Real runs of all cases with the newest version, each stopped where its first step would begin."""
    llamafactory = provide_llamafactory()
    newest = load_cases()[0].transformers
    cases = [case for case in load_cases() if case.transformers == newest]
    answers: dict[str, dict[str, int]] = {}
    for ranks in sorted({case.ranks for case in cases}):
        answers |= plans(llamafactory, [case for case in cases if case.ranks == ranks], ranks)
    document = json.loads(CASES_FILE.read_text())
    versions = {name: installed(llamafactory, name) for name in ("transformers", "llamafactory")}
    document["recordings"][0] = {**versions, "plans": answers}
    CASES_FILE.write_text(json.dumps(document, indent=1) + "\n")


def plans(llamafactory: RealLlamaFactory, cases: Sequence[PlanCase], ranks: int) -> dict[str, dict[str, int]]:
    """The printed plans of these cases, all in one process for each rank."""
    with tempfile.TemporaryDirectory(prefix="plan") as scratch:
        root = Path(scratch)
        asked = []
        for number, case in enumerate(cases):
            folder = root / str(number)
            config = llamafactory.write_project(folder, rows=1, overwrite_output_dir=True)
            write_datasets(case, folder / "data")
            values = {**yaml.safe_load(config.read_text()), **case.values}
            kept = {key: value for key, value in values.items() if value is not None}
            asked.append({"name": case.name, "cwd": str(folder), "values": kept})
        (root / "cases.json").write_text(json.dumps(asked))
        programs = llamafactory.environment / "bin"
        start = [str(programs / "python")]
        if ranks > 1:
            start = [str(programs / "torchrun"), "--nproc_per_node", str(ranks)]
        script = str(HERE.parent / "e2e" / "read_plans.py")
        subprocess.run(
            [*start, script, str(root / "cases.json"), str(root / "answers")],
            env=run_environment(root),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=1200,
        )
        lines = map(json.loads, (root / "answers").read_text().splitlines())
        return {line["name"]: line["printed"] for line in lines}


def installed(llamafactory: RealLlamaFactory, package: str) -> str:
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    python = str(llamafactory.environment / "bin" / "python")
    done = subprocess.run(
        [python, "-c", code, package], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


if __name__ == "__main__":
    main()
