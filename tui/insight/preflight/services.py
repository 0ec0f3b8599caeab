"""The port of a service: where it is taken, the service ends only after its model was loaded."""

from collections.abc import Iterator, Mapping, Sequence

from tui.facts.finding import Finding
from tui.llamafactory.argv import cli_subcommand, execution

_DEFAULT = 8000  # of LLaMA-Factory's API and of vLLM alike
_PORT_VARIABLES = {"api": "API_PORT", "webui": "GRADIO_SERVER_PORT", "webchat": "GRADIO_SERVER_PORT"}


def service_findings(
    command: Sequence[str], environ: Mapping[str, str], ports_taken: frozenset[int]
) -> Iterator[Finding]:
    """Findings about a service that is to be started; the subject is where the port is set."""
    found = cli_subcommand(execution(command))
    if found is None:
        name, written = "--port", _option(command, "--port") or str(_DEFAULT)
    elif found[0] in _PORT_VARIABLES:
        name = _PORT_VARIABLES[found[0]]
        # Gradio looks for a free port itself unless one is asked for.
        written = environ.get(name, str(_DEFAULT) if found[0] == "api" else "")
    else:
        return
    if written.isascii() and written.isdigit() and len(written) < 6 and int(written) in ports_taken:
        yield Finding("service_port_taken", "danger", name, {"port": int(written)}, blocks=True)


def _option(command: Sequence[str], name: str) -> str | None:
    for word, following in zip(command, [*command[1:], ""], strict=True):
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None
