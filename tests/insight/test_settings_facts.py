from support.runs import run_log

from tui.facts.explained import SettingName
from tui.facts.training import MetricPoint, Plan, RunLog, Told
from tui.insight.settings_facts import setting_facts, setting_findings

LOG = RunLog(
    plan=Plan(batch_per_device=4, accumulation=4, effective_batch=32, total_steps=100),
    told=Told(
        world_size=2,
        compute_dtype="bfloat16",
        finetuning="lora",
        gradient_checkpointing=True,
        attention="sdpa",
        liger=False,
        quantization=0,
    ),
)
CONFIG: dict[str, object] = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": "4",
    "bf16": True,
    "finetuning_type": "lora",
}


def differing(log: RunLog, config: dict[str, object]) -> set[SettingName]:
    return {fact.name for fact in setting_facts(log, config) if fact.differs}


def test_a_run_as_configured() -> None:
    assert differing(LOG, CONFIG) == set()
    facts = {fact.name: fact for fact in setting_facts(LOG, CONFIG)}
    assert (facts["effective_batch"].log, facts["effective_batch"].config) == (32, 32)


def test_what_differs_is_a_finding() -> None:
    config = {**CONFIG, "bf16": "false", "fp16": True, "flash_attn": "fa2", "enable_liger_kernel": True}
    config |= {"quantization_bit": 4, "max_steps": 50, "finetuning_type": "full"}
    names = differing(LOG, config)
    assert names == {"precision", "attention", "liger", "quantization", "total_steps", "finetuning"}
    found = {f.evidence["name"]: f.level for f in setting_findings("job", setting_facts(LOG, config))}
    assert set(found) == names
    assert (found["attention"], found["precision"]) == ("advice", "warning")


def test_defaults_are_the_trainers() -> None:
    assert "batch_per_device" in differing(LOG, {}), "it would be 8"
    assert differing(RunLog(), CONFIG) == set(), "a log that says nothing differs from nothing"


def test_tensor_parallel_cards_are_one_group() -> None:
    log = RunLog(plan=Plan(batch_per_device=4, accumulation=4, effective_batch=16), told=Told(world_size=2))
    assert {f.name: f.log for f in setting_facts(log, None)}["data_parallel"] == 1


def test_real_lengths_beside_the_cutoff() -> None:
    log = run_log([1.0] * 10, total=20, metrics=(MetricPoint(10, loss=1.0, tokens_seen=32 * 10 * 400),))
    facts = {fact.name: fact for fact in setting_facts(log, {"cutoff_len": 2048})}
    assert (facts["sample_tokens"].log, facts["sample_tokens"].config) == (400, 2048)
    assert not facts["sample_tokens"].differs
