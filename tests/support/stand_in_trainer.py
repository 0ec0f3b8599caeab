"""A ``llamafactory-cli`` for tests that need a real job and not real training.

It prints what LLaMA-Factory prints where it matters, writes what it writes, and reacts to signals as a
Python program does. Behaviour by config keys: ``max_steps``, ``stand_in: run|crash|nothing``.
"""

from pathlib import Path

from support.fake_prefix import make_prefix

_PROGRAM = r"""#!@PYTHON@
import json, os, sys, time
from pathlib import Path

lines = Path(sys.argv[2]).read_text().splitlines()
config = dict(line.split(": ", 1) for line in lines if ": " in line)
total = int(config.get("max_steps", 100000))
kind = config.get("stand_in", "run")
if kind == "nothing":
    sys.exit(0)
if kind == "secret":
    print("login with", config["hub_token"], "\x1b[31mred\x1b[0m")
stamp = time.strftime("[INFO|trainer.py:2520] %Y-%m-%d %H:%M:%S,823 >> ")
print(stamp + "***** Running training *****")
for label, value in [
    ("Num examples", 180), ("Num Epochs", 1), ("Instantaneous batch size per device", 1),
    ("Total train batch size (w. parallel, distributed & accumulation)", 4),
    ("Gradient Accumulation steps", 4), ("Total optimization steps", total),
]:
    print(f"{stamp}  {label} = {value:,}", flush=True)
output = Path(config.get("output_dir", "out"))
output.mkdir(parents=True, exist_ok=True)
print("env", os.environ.get("PROBE", "-"), "in", os.getcwd(), flush=True)
for step in range(1, total + 1):
    time.sleep(0.02)
    clock = f"00:{min(59, step // 50):02d}<00:09, 49.9it/s"
    sys.stderr.write(f"\r{100 * step // total:3d}%|██        | {step}/{total} [{clock}]")
    sys.stderr.flush()
    if step % 5 == 0:
        print({"loss": round(5 / step, 4), "learning_rate": 0.001, "epoch": round(step / total, 2)})
    if kind == "crash" and step == 3:
        raise RuntimeError("CUDA error: the card said no")
(output / "adapter_model.safetensors").write_bytes(b"w")
(output / "trainer_state.json").write_text(json.dumps({"global_step": total, "max_steps": total}))
(output / "all_results.json").write_text(json.dumps({"train_loss": 1.0}))
print("Training completed. Do not forget to share your model on huggingface.co/models =)")
"""


def make_environment(prefix: Path) -> Path:
    """An environment whose ``llamafactory-cli`` is the stand-in."""
    make_prefix(prefix)
    script = prefix / "bin" / "llamafactory-cli"
    script.write_text(_PROGRAM.replace("@PYTHON@", str(prefix / "bin" / "python")))
    return prefix


def write_config(folder: Path, **values: object) -> Path:
    """A config that the stand-in understands, in ``folder``."""
    path = folder / "train.yaml"
    sound = {"model_name_or_path": "org/tiny", "dataset_dir": "ONLINE", "dataset": "rows", "use_cpu": "true"}
    settings = {"stage": "sft", "do_train": "true", **sound, "output_dir": "out", **values}
    path.write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
    return path
