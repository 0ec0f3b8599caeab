"""The rules of the house that neither import-linter nor ruff can see, checked on the syntax trees.

A use is written as it would be written in full, whatever it was imported as: ``os.kill``, ``open``,
``import textual.app``. A method of an unknown object is ``.kill()``, a true ``shell=`` is ``shell=``.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

import tui

PACKAGE = Path(tui.__file__).parent


@dataclass(frozen=True)
class Rule:
    """``banned`` and the paths are patterns; paths are relative to the package.

    ``example`` is code that breaks the rule in a file of ``applies_to``: it proves that the rule bites.
    """

    why: str
    banned: tuple[str, ...]
    example: str
    applies_to: tuple[str, ...] = ("*",)
    except_in: tuple[str, ...] = ()

    def governs(self, path: str) -> bool:
        """Whether the rule holds in this file."""
        return _matches(path, self.applies_to) and not _matches(path, self.except_in)


_BELOW_WORDS = ("facts/*", "collect/*", "llamafactory/*", "insight/*", "jobs/*")
_WRITERS = ("cli/*", "__main__.py")

RULES = {
    "signals": Rule(
        "signals go through jobs/stopper.py, which checks identities",
        ("os.kill", "os.killpg", "signal.pidfd_send_signal", "signal.pthread_kill", "signal.raise_signal"),
        "from os import kill as end\nend(1, 9)",
        except_in=("jobs/stopper.py",),
    ),
    "ending processes": Rule(
        "only who started a helper process may end it; a job is ended by jobs/stopper.py",
        (".kill()", ".terminate()", ".send_signal()", ".suspend()", "os.abort"),
        "import psutil\npsutil.Process(1).kill()",
        except_in=(
            *("jobs/stopper.py", "collect/disks.py", "collect/gpu_worker.py", "collect/nvidia_smi.py"),
            "llamafactory/lengths.py",
        ),
    ),
    "shell": Rule(
        "a command is a list of arguments, never a line for a shell",
        ("shell=", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
        "import subprocess\nsubprocess.run('ls', shell=True)",
    ),
    "evaluation": Rule(
        "text from outside is hostile: it is parsed, never run or unpickled",
        (
            "eval",
            "exec",
            "compile",
            "pickle.*",
            "marshal.*",
            "shelve.*",
            "yaml.load",
            "yaml.*_load",
            "yaml.*_load_all",
        ),
        "import yaml as y\ny.unsafe_load('x')",
    ),
    "printing": Rule(
        "only the command line prints",
        ("print", "input"),
        "print('x')",
        except_in=_WRITERS,
    ),
    "words": Rule(
        "below the words layer a finding is a code with evidence, not a sentence",
        ("import tui.text*", "tui.text.translate.*"),
        "from tui.text.translate import tr",
        applies_to=_BELOW_WORDS,
    ),
    "gettext": Rule(
        "one place translates",
        ("import gettext", "import locale"),
        "import gettext",
        except_in=("text/translate.py",),
    ),
    "NVML": Rule(
        "NVML can hang: it is called in the helper process only",
        ("import pynvml*",),
        "def f():\n    from pynvml import nvmlInit",
        except_in=("collect/nvml/*",),
    ),
    "Textual": Rule(
        "the screen is the only importer of Textual",
        ("import textual*",),
        "import textual.app",
        except_in=("app/*",),
    ),
    "pure insight": Rule(
        "insight does no input or output, and clocks are passed in",
        (
            *("open", "print", "input", "pathlib.Path", "pathlib.Path.*", "datetime.datetime.now", "time.*"),
            *(".open()", ".read_text()", ".read_bytes()", ".write_text()", ".write_bytes()"),
            *(".exists()", ".is_file()", ".is_dir()", ".stat()", ".iterdir()", ".mkdir()", ".unlink()"),
            *(f"import {name}" for name in ("os", "os.*", "io", "sys", "shutil", "tempfile", "glob", "mmap")),
            *(f"import {name}" for name in ("subprocess", "multiprocessing*", "threading", "asyncio*")),
            *(
                f"import {name}"
                for name in ("socket*", "http*", "urllib*", "select*", "fcntl", "ctypes*", "psutil*")
            ),
        ),
        "from pathlib import Path\nPath('x').read_text()",
        applies_to=("insight/*",),
    ),
}

KEEPER = "tui.jobs.keeper"
# Facts and its reader of /proc, and beside it the counter of out-of-memory kills.
KEEPER_MAY_IMPORT = (
    "tui",
    "tui.facts*",
    "tui.jobs*",
    "tui.collect",
    "tui.collect.proc",
    "tui.collect.cgroup",
)


@pytest.mark.parametrize("name", RULES)
def test_the_package_keeps_the_rule(name: str) -> None:
    rule = RULES[name]
    broken = [
        f"tui/{path}:{line}: {use}"
        for path, uses in _package_uses().items()
        if rule.governs(path)
        for line, use in uses
        if _matches(use, rule.banned)
    ]
    assert not broken, f"{rule.why}:\n" + "\n".join(broken)


@pytest.mark.parametrize("name", RULES)
def test_the_rule_bites(name: str) -> None:
    rule = RULES[name]
    assert any(_matches(use, rule.banned) for _, use in uses_of(rule.example))
    assert any(rule.governs(path) for path in _package_uses()), "no file that it could hold in"


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("import os\nx = os.kill", "os.kill"),
        ("import os.path as p\np.join", "os.path.join"),
        ("from datetime import datetime as d\nd.now()", "datetime.datetime.now"),
        ("def f():\n    import textual", "import textual"),
        ("from tui import text", "import tui.text"),
        ("x.y().kill()", ".kill()"),
        ("import subprocess\nsubprocess.Popen([], shell=1)", "shell="),
        ("open('x')", "open"),
    ],
)
def test_uses_are_found_whatever_they_are_called(code: str, use: str) -> None:
    assert use in {found for _, found in uses_of(code)}


@pytest.mark.parametrize(
    "code", ["def open(x): ...\nself.open", "run(shell=False)", "kill = 1", "'os.kill'", "open: int = 1"]
)
def test_what_only_looks_like_a_use_is_none(code: str) -> None:
    assert not {use for _, use in uses_of(code)} & {"open", "shell=", "os.kill", ".kill()"}


def test_no_sentence_is_translated_inside_an_f_string() -> None:
    """There the extractor sees it from Python 3.12 on only, so it would get no translation."""
    hidden = [
        f"tui/{path.relative_to(PACKAGE)}:{inner.lineno}: {ast.unparse(inner)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for outer in ast.walk(ast.parse(path.read_text()))
        if isinstance(outer, ast.JoinedStr)
        for inner in ast.walk(outer)
        if isinstance(inner, ast.Call) and ast.unparse(inner.func) in {"tr", "tr_plural", "tr_noop"}
        if isinstance(inner.args[0], ast.Constant)
    ]
    assert not hidden, "\n".join(hidden)


def test_the_keeper_imports_all_it_needs_at_start_and_little() -> None:
    """An upgrade of the package under a running job must not break the job's stop."""
    waiting, reached = [KEEPER], set[str]()
    while waiting:
        module = waiting.pop()
        if module in reached:
            continue
        reached.add(module)
        tree = ast.parse(_file_of(module).read_text())
        late = [node.lineno for node in _imports_in_functions(tree)]
        assert not late, f"{module} imports inside a function, at lines {late}"
        waiting += [name for name in _modules_imported(tree) if name.partition(".")[0] == "tui"]
        foreign = (
            {name.partition(".")[0] for name in _modules_imported(tree)} - sys.stdlib_module_names - {"tui"}
        )
        assert not foreign, f"{module} imports {foreign}; the keeper needs the standard library only"
    beyond = {module for module in reached if not _matches(module, KEEPER_MAY_IMPORT)}
    assert not beyond, f"the keeper must not need {beyond}"


@cache
def _package_uses() -> dict[str, list[tuple[int, str]]]:
    """Every file of the package with its uses."""
    return {
        path.relative_to(PACKAGE).as_posix(): uses_of(path.read_text())
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def uses_of(code: str) -> list[tuple[int, str]]:
    """Line and full name of everything that the code imports, refers to, or calls as a method."""
    tree = ast.parse(code)
    names = _names(tree)
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, f"import {alias.name}") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found += [
                    (node.lineno, f"import {node.module}"),
                    (node.lineno, f"import {full}"),
                    (node.lineno, full),
                ]
        elif isinstance(node, ast.Name | ast.Attribute):
            if full_name := _full_name(node, names):
                found.append((node.lineno, full_name))
        elif isinstance(node, ast.Call):
            found += _call_uses(node, names)
    return found


def _call_uses(node: ast.Call, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    if isinstance(node.func, ast.Attribute) and _full_name(node.func, names) is None:
        yield node.lineno, f".{node.func.attr}()"
    for keyword in node.keywords:
        if keyword.arg == "shell" and not (
            isinstance(keyword.value, ast.Constant) and not keyword.value.value
        ):
            yield node.lineno, "shell="


def _names(tree: ast.Module) -> dict[str, str]:
    """What each name of the module stands for; a builtin stands for itself unless redefined."""
    names = {name: name for name in ("open", "print", "input", "eval", "exec", "compile")}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.pop(node.name, None)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _full_name(node: ast.expr, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := _full_name(node.value, names)):
        return f"{owner}.{node.attr}"
    return None


def _modules_imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (
                f"{node.module}.{alias.name}"
                for alias in node.names
                if node.module.startswith("tui") and _file_of(f"{node.module}.{alias.name}").exists()
            )


def _imports_in_functions(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))


def _file_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
