"""Configs: what they mean, and the errors for those that mean nothing.

The recorded cases hold what OmegaConf, called as LLaMA-Factory calls it, made of texts and overrides.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tui.facts.errors import EXIT_USAGE, LlamaherdError
from tui.llamafactory.config import (
    TrainingConfig,
    apply_overrides,
    config_hash,
    dump,
    load_config,
    resolve,
)
from tui.llamafactory.text_file import FILE_LIMIT

CASES = json.loads((Path(__file__).parent.parent / "data" / "omegaconf" / "cases.json").read_text())
READY = sorted((Path(__file__).parent.parent.parent / "configs").glob("*.yaml"))


def write(folder: Path, text: str, name: str = "train.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def case_name(case: dict[str, Any]) -> str:
    return re.sub(r"\s+", " ", f"{case['text']!r} {' '.join(case['overrides'])}")


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_it_means_what_it_means_to_llamafactory(case: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path, case["text"])
    if "error" in case or case["values"] == {}:
        with pytest.raises(LlamaherdError):
            apply_overrides(load_config(path), case["overrides"])
        return
    config = apply_overrides(load_config(path), case["overrides"])
    assert comparable(config.values) == comparable(case["values"])
    copy = load_config(write(tmp_path, dump(config), "copy.yaml"))
    assert comparable(copy.values) == comparable(case["values"])


def comparable(values: object) -> str:
    """Types count: 1, 1.0 and True are equal in Python and not the same to LLaMA-Factory."""
    return json.dumps(values, sort_keys=True)


class TestOverrides:
    def config(self, tmp_path: Path) -> TrainingConfig:
        return load_config(write(tmp_path, "stage: sft\nlr: 0.1\ntags: [a]\nnested: {a: 1, b: {c: 2}}\n"))

    def test_the_user_s_file_stays_as_it_is(self, tmp_path: Path) -> None:
        config = self.config(tmp_path)
        before = config.path.read_bytes()
        changed = apply_overrides(config, ["lr=1e-4", "nested.b.c=3", "new=x"])
        assert changed.values == {
            "stage": "sft",
            "lr": 1e-4,
            "tags": ["a"],
            "nested": {"a": 1, "b": {"c": 3}},
            "new": "x",
        }
        assert config.values["lr"] == 0.1
        assert config.values["nested"] == {"a": 1, "b": {"c": 2}}
        assert config.path.read_bytes() == before

    def test_an_overridden_key_stands_nowhere_in_the_file(self, tmp_path: Path) -> None:
        config = self.config(tmp_path)
        assert config.lines == {"stage": 1, "lr": 2, "tags": 3, "nested": 4}
        assert apply_overrides(config, ["lr=1", "nested.a=2"]).lines == {"stage": 1, "tags": 3}

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "=",
            "=1",
            "lr",
            "--lr=1",
            "--lr 1",
            "a b=1",
            "a..b=1",
            ".a=1",
            "a.=1",
            "a[0]=1",
            r"a\.b=1",
            "a=[1",
            "a: 1",
            "a={x: &y [*y]}",
            "a=" + "x" * 10_000,
            "tags.0=b",
            "nested=[1]",
            "a" * 1_000_000,
        ],
    )
    def test_what_is_no_override(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(LlamaherdError) as caught:
            apply_overrides(self.config(tmp_path), [text])
        assert (caught.value.code, caught.value.exit_code) == ("override_invalid", EXIT_USAGE)
        assert str(caught.value.values["override"]) in text
        assert caught.value.values["detail"]

    def test_an_error_does_not_repeat_a_secret(self, tmp_path: Path) -> None:
        with pytest.raises(LlamaherdError) as caught:
            apply_overrides(self.config(tmp_path), ["hf_hub_token=[hf_abcdefghijklmnopqrstuv"])
        assert "abcdefg" not in str(caught.value)


class TestPaths:
    def test_relative_paths_mean_the_folder_it_runs_in(self, tmp_path: Path) -> None:
        text = "output_dir: out/a\ndeepspeed: ds/z3.json\ndataset_dir: data\n"
        config = resolve(load_config(write(tmp_path, text)), Path("/work dir"))
        assert config.output_dir == Path("/work dir/out/a")
        assert config.deepspeed == Path("/work dir/ds/z3.json")
        assert config.dataset_dir == Path("/work dir/data")
        assert dump(config) == text, "the copy keeps them relative: LLaMA-Factory runs there"

    def test_absolute_home_and_default(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/me")
        config = resolve(load_config(write(tmp_path, "output_dir: ~/out\ndeepspeed: /x.json\n")), tmp_path)
        assert config.output_dir == Path("/home/me/out")
        assert config.deepspeed == Path("/x.json")
        assert config.dataset_dir == tmp_path / "data"

    @pytest.mark.parametrize(
        "text",
        ["output_dir: ''", "output_dir: [a]", 'output_dir: "a\\0b"', "deepspeed: {zero: 3}", "deepspeed: 3"],
    )
    def test_what_is_no_path(self, tmp_path: Path, text: str) -> None:
        config = resolve(load_config(write(tmp_path, text)), tmp_path)
        assert (config.output_dir, config.deepspeed) == (None, None)

    @pytest.mark.parametrize("written", ["ONLINE", "REMOTE:llamafactory/demo", "{a: 1}", "''", "3"])
    def test_a_dataset_from_elsewhere_has_no_folder(self, tmp_path: Path, written: str) -> None:
        config = load_config(write(tmp_path, f"dataset_dir: {written}"))
        assert resolve(config, tmp_path).dataset_dir is None

    def test_the_home_of_nobody(self, tmp_path: Path) -> None:
        config = resolve(load_config(write(tmp_path, "output_dir: ~no-such-user/out")), tmp_path)
        assert config.output_dir == tmp_path / "~no-such-user/out"


class TestValues:
    def test_typed_reading(self, tmp_path: Path) -> None:
        text = "stage: sft\ndo_train: true\nsave_steps: 0.1\neval_steps: 500\nmax_steps: 50.0\nlr: '1e-4'\n"
        config = load_config(write(tmp_path, text))
        assert (config.stage, config.do_train, config.save_steps) == ("sft", True, 0.1)
        assert (config.eval_steps, config.max_steps) == (500, 50)
        assert (config.logging_steps, config.text("lr"), config.number("lr")) == (None, "1e-4", None)

    def test_odd_types_are_no_values(self, tmp_path: Path) -> None:
        text = "stage: 1\ndo_train: 'yes'\nsave_steps: true\neval_steps: steps\nmax_steps: .inf\n"
        config = load_config(write(tmp_path, text))
        assert (config.stage, config.do_train, config.save_steps) == (None, None, None)
        assert (config.eval_steps, config.max_steps) == (None, None)

    def test_masked(self, tmp_path: Path) -> None:
        text = """
            stage: sft
            hf_hub_token: abcdef
            swanlab_api_key: 123456
            swanlab_lark_secret: null
            include_num_input_tokens_seen: all
            new_special_tokens: <a>
            max_new_tokens: 512
            push_url: https://me:hunter2@example.org/x
            auth: {password: [x, y], user: me}
        """
        masked = load_config(write(tmp_path, text)).masked()
        assert masked == {
            "stage": "sft",
            "hf_hub_token": "***",
            "swanlab_api_key": "***",
            "swanlab_lark_secret": None,
            "include_num_input_tokens_seen": "all",
            "new_special_tokens": "<a>",
            "max_new_tokens": 512,
            "push_url": "https://***@example.org/x",
            "auth": {"password": ["***", "***"], "user": "me"},
        }

    def test_the_hash_is_of_the_settings_not_of_their_order(self, tmp_path: Path) -> None:
        one = config_hash(load_config(write(tmp_path, "a: 1\nb: {x: 1, y: 2} # note\n")))
        assert one == config_hash(load_config(write(tmp_path, "b:\n  y: 2\n  x: 1\na: 1\n")))
        assert one != config_hash(load_config(write(tmp_path, "a: 1.0\nb: {x: 1, y: 2}\n")))
        assert re.fullmatch(r"[0-9a-f]{64}", one)


class TestJson:
    def test_it_is_handed_over_as_yaml(self, tmp_path: Path) -> None:
        values = {"stage": "sft", "lr": 1e-4, "name": "no", "path": "a/b 中", "nested": {"a": [1, None]}}
        path = write(tmp_path, json.dumps(values, indent="\t"), "train.json")
        config = load_config(path)
        assert config.values == values
        assert load_config(write(tmp_path, dump(config))).values == values

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ('{"a": 1,\n "b"}', 2),
            ("", 1),
            ('{"a": 1, "a": 2}', None),
            ("[" * 100_000, None),
            ('{"a": ' * 60 + "1" + "}" * 60, None),
            ('{"a": ' + "9" * 5000 + "}", None),
            ('{"a": [' + "1," * 20_000 + "1]}", None),
            ('{"a": "\\ud800"}', None),
        ],
    )
    def test_broken(self, tmp_path: Path, text: str, line: int | None) -> None:
        with pytest.raises(LlamaherdError) as caught:
            load_config(write(tmp_path, text, "train.json"))
        assert (caught.value.code, caught.value.values["line"]) == ("config_invalid", line)


class TestErrors:
    def test_each_names_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "folder.yaml").mkdir()
        for name, content in {
            "broken.yaml": b"stage: sft\nlr 1\nx: 1\n",
            "gbk.yaml": "# 微调\n".encode("gbk"),
            "list.yaml": b"- a\n",
            "word.yaml": b"hello",
            "empty.yaml": b"",
            "keys.yaml": b"a: 1\n2: b\n",
            "large.yaml": b"#" * (FILE_LIMIT + 1),
            "train.txt": b"stage: sft\n",
        }.items():
            (tmp_path / name).write_bytes(content)
        expected: list[tuple[str, str, dict[str, object]]] = [
            ("missing.yaml", "config_missing", {}),
            ("folder.yaml", "config_unreadable", {"why": "not_a_file"}),
            ("train.txt", "config_unreadable", {"why": "suffix"}),
            ("n" * 300 + ".yaml", "config_unreadable", {"detail": "File name too long"}),
            (
                "broken.yaml",
                "config_invalid",
                {"line": 2, "column": 1, "detail": "could not find expected ':'"},
            ),
            ("gbk.yaml", "config_invalid", {"line": 1, "column": None, "detail": "not UTF-8 text"}),
            ("keys.yaml", "config_invalid", {"line": 2, "column": None, "detail": "the key 2 is not a name"}),
            ("list.yaml", "config_not_mapping", {}),
            ("word.yaml", "config_not_mapping", {}),
            ("empty.yaml", "config_not_mapping", {}),
            ("large.yaml", "config_too_large", {"limit": FILE_LIMIT}),
        ]
        for name, code, values in expected:
            with pytest.raises(LlamaherdError) as caught:
                load_config(tmp_path / name)
            assert caught.value.code == code, name
            assert caught.value.values == {"path": str(tmp_path / name), **values}

    def test_a_file_without_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def denied(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", denied)  # root may read everything
        (tmp_path / "train.yaml").touch()
        with pytest.raises(LlamaherdError) as caught:
            load_config(tmp_path / "train.yaml")
        assert caught.value.code == "config_unreadable"
        assert caught.value.values["detail"] == "Permission denied"


@pytest.mark.parametrize("path", [path for path in READY if path.stem != "settings.example"], ids=str)
def test_ready_configs_are_complete(path: Path) -> None:
    config = resolve(load_config(path), Path("/work"))
    assert config.do_train is True
    assert config.stage in {"pt", "sft", "rm", "ppo", "dpo", "kto"}
    assert config.output_dir is not None
    assert config.text("model_name_or_path")
    assert config.number("learning_rate")


def test_the_baseline_is_the_course_s() -> None:
    config = load_config(next(path for path in READY if path.name == "lora_sft_baseline.yaml"))
    batch = (config.whole("per_device_train_batch_size"), config.whole("gradient_accumulation_steps"))
    assert batch == (4, 8)
    assert (config.whole("lora_rank"), config.whole("lora_alpha")) == (8, 16)
    assert (config.number("learning_rate"), config.whole("cutoff_len")) == (5e-5, 2048)
