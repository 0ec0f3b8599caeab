"""Masking: what must never be shown, what must stay readable, and time linear in the length."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tui.facts.secrets import MASK, TEXT_LIMIT, is_secret_name, mask_arguments, mask_environment, mask_text

HF = "hf_" + "aB3" * 12
HEX40 = "0123456789abcdef" * 2 + "01234567"


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "hf_hub_token",
        "ms_hub_token",
        "--hf_hub_token",
        "AutodlAutoPanelToken",
        "authToken",
        "hftoken",
        "API_KEY",
        "OPENAI_API_KEY",
        "swanlab_api_key",
        "apikey",
        "X-Api-Key",
        "APIKey",
        "AWS_SECRET_ACCESS_KEY",
        "private_key",
        "db.password",
        "MYSQL_PWD",
        "passwd",
        "credentials",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "swanlab_lark_secret",
        "swanlab_lark_webhook_url",
    ],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "num_tokens",
        "max_new_tokens",
        "max_tokens",
        "tokenizer",
        "tokenizer_name_or_path",
        "tokenized_path",
        "include_num_input_tokens_seen",
        "TOKENIZERS_PARALLELISM",
        "new_special_tokens",
        "skip_special_tokens",
        "pad_token",
        "eos_token_id",
        "token_type_ids",
        "train_tokens_per_second",
        "PWD",
        "OLDPWD",
        "SSH_AUTH_SOCK",
        "monkey",
        "keyboard",
        "save_steps",
        "",
        "*" * 5000,
    ],
)
def test_names_that_only_look_alike(name: str) -> None:
    assert not is_secret_name(name)


def test_environment_keeps_what_is_harmless() -> None:
    masked = mask_environment(
        {
            "HF_TOKEN": "anything",
            "WANDB_API_KEY": HEX40,
            "EMPTY_TOKEN": "",
            "CUDA_VISIBLE_DEVICES": "0,1",
            "http_proxy": "http://me:pw@10.0.0.1:80",
            "TOKENIZERS_PARALLELISM": "false",
            "ARGS": f"--x {HF}",
        }
    )
    assert masked == {
        "HF_TOKEN": MASK,
        "WANDB_API_KEY": MASK,
        "EMPTY_TOKEN": "",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "http_proxy": "http://***@10.0.0.1:80",
        "TOKENIZERS_PARALLELISM": "false",
        "ARGS": "--x ***",
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--hf_hub_token", "abc", "--stage", "sft"], ["--hf_hub_token", MASK, "--stage", "sft"]),
        (["train.yaml", "hf_hub_token=abc"], ["train.yaml", "hf_hub_token=***"]),
        (["--api_key=X", "--port", "8000"], ["--api_key=***", "--port", "8000"]),
        (["--api-key", "one", "two", "--port", "1"], ["--api-key", MASK, MASK, "--port", "1"]),
        (["--api_key", "--port", "1"], ["--api_key", "--port", "1"]),
        (["--password"], ["--password"]),
        (["-H", "Authorization: Bearer abcdefghijkl"], ["-H", "Authorization: ***"]),
        (["git", "clone", "https://me:pw@host/x.git"], ["git", "clone", "https://***@host/x.git"]),
        (['{"api_key":"x=y"}'], ['{"api_key":"***"}']),
        (["bash", "-c", "cd /x; HF_TOKEN=abc run"], ["bash", "-c", "cd /x; HF_TOKEN=*** run"]),
        (["http://127.0.0.1:8888/lab?token=abc&a=1"], ["http://127.0.0.1:8888/lab?token=***&a=1"]),
        (["max_new_tokens=512", "--num_tokens", "5"], ["max_new_tokens=512", "--num_tokens", "5"]),
        (["--use_auth_token=True", "hf_token="], ["--use_auth_token=True", "hf_token="]),
        ([], []),
    ],
)
def test_arguments(arguments: list[str], expected: list[str]) -> None:
    assert mask_arguments(arguments) == tuple(expected)


@pytest.mark.parametrize(
    "secret",
    [
        HF,
        "sk-proj-" + "a1B2" * 8,
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1_" * 12,
        "glpat-" + "a1" * 10,
        "AKIA" + "A1" * 8,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF-_123",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1\n-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_shapes_are_masked_wherever_they_stand(secret: str) -> None:
    for text in (secret, f"login with {secret} done", f'x="{secret}",', f"a\n{secret}\nb"):
        masked = mask_text(text)
        assert secret not in masked
        assert MASK in masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AutodlAutoPanelToken=xyz.abc-1 next", "AutodlAutoPanelToken=*** next"),
        (f"wandb login {HEX40}", "wandb login ***"),
        (f"api key: {HEX40}", "api key: ***"),
        ("curl -H 'Authorization: Basic abc=' x", "curl -H 'Authorization: ***' x"),
        ("sent Bearer abcdefgh12345678", "sent Bearer ***"),
        ("Cookie: a=b; c=d", "Cookie: ***"),
        ("scp root:pw@10.0.0.1:/x .", "scp root:***@10.0.0.1:/x ."),
        ("https://oauth:a@b@host/x?mail=a@b", "https://***@host/x?mail=a@b"),
        ("hf_hub_token: short", "hf_hub_token: ***"),
        ("{'api_key': 'abc def', \"password\": \"q\"}", "{'api_key': '***', \"password\": \"***\"}"),
        ("PASSWORD = hunter2 next", "PASSWORD = *** next"),
        (
            "llamafactory-cli train --hf_hub_token abc --stage sft",
            "llamafactory-cli train --hf_hub_token *** --stage sft",
        ),
        ("a=HF_TOKEN=x", "a=HF_TOKEN=***"),
        ("api_key='unclosed rest", "api_key=*** rest"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert mask_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[INFO] llamafactory.data.template:143 >> Add pad token: <|endoftext|>",
        "eos_token: </s>, num_tokens=5",
        f"commit {HEX40}",
        "disk-usage-of-some-long-name and task-with-a-long-name-0001",
        "  11%|█         | 5/45 [00:18<02:24,  3.62s/it]",
        "{'loss': 5.6702, 'num_input_tokens_seen': 4096, 'epoch': 0.11}",
        "hf_hub_token: null",
        "trainable params: 8,192 || all params: 100,736",
        "write to me@example.org at 12:30",
        "git@github.com:hiyouga/LLaMA-Factory.git",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert mask_text(text) == text


@given(st.text(max_size=200))
@example("api_key='***' token=x")
@example("://a@://b@c")
def test_masking_twice_changes_nothing(text: str) -> None:
    once = mask_text(text)
    assert mask_text(once) == once


@given(
    st.text(alphabet="abc =:'\"@/.-_{}\n", max_size=60), st.text(alphabet="abc =:'\"@/.-_{}\n", max_size=60)
)
def test_a_token_is_masked_between_any_neighbours(before: str, after: str) -> None:
    secret = "hf_" + "Zz9" * 8
    masked = mask_text(f"{before} {secret} {after}")
    assert secret not in masked


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "eyJ",
        "sk-",
        "://",
        "a:",
        "a@",
        "api_key",
        "token: ",
        "-----BEGIN PRIVATE KEY-----",
        '"',
        "aA",
        "wandb ",
    ],
)
def test_time_grows_with_the_length_only(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        began = time.process_time()
        mask_text(text)
        return time.process_time() - began

    # A quadratic pattern needs 64 times as long for 8 times the text; the constant covers the clock's grain.
    assert seconds(160_000) < 24 * seconds(20_000) + 0.2


def test_what_was_not_looked_at_is_not_shown() -> None:
    assert len(mask_text("x" * (TEXT_LIMIT + 5))) == TEXT_LIMIT
