"""Ports of services."""

import pytest

from tui.insight.preflight.services import service_findings


@pytest.mark.parametrize(
    ("line", "environ", "taken"),
    [
        ("llamafactory-cli api x.yaml", {}, 8000),
        ("/v/bin/lmf api x.yaml", {"API_PORT": "9000"}, 9000),
        ("llamafactory-cli webui", {"GRADIO_SERVER_PORT": "7860"}, 7860),
        ("vllm serve org/model", {}, 8000),
        ("vllm serve org/model --port 8001", {}, 8001),
        ("python -m vllm.entrypoints.openai.api_server --port=8002", {}, 8002),
    ],
)
def test_a_port_that_is_taken(line: str, environ: dict[str, str], taken: int) -> None:
    (finding,) = service_findings(line.split(), environ, frozenset({taken}))
    assert (finding.code, finding.blocks, finding.evidence) == ("service_port_taken", True, {"port": taken})
    assert list(service_findings(line.split(), environ, frozenset({taken + 1}))) == []


@pytest.mark.parametrize(
    ("line", "environ"),
    [
        ("llamafactory-cli webui", {}),
        ("llamafactory-cli chat x.yaml", {}),
        ("llamafactory-cli api x.yaml", {"API_PORT": "no number"}),
        ("vllm serve m --port", {}),
    ],
)
def test_where_no_port_is_known_nothing_is_said(line: str, environ: dict[str, str]) -> None:
    assert list(service_findings(line.split(), environ, frozenset({7860}))) == []
