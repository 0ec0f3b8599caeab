"""The keeper as a process: what it imports, survives, records, and hands to the job."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.jobs import PROC, QUICK, Yard
from support.waiting import wait_until

import tui
from tui.facts.errors import LlamaherdError
from tui.facts.job import Graces
from tui.jobs import client
from tui.jobs.client import JobSpec, request_stop, start_job, wait_stopped
from tui.jobs.folder import JobFolder, create_folder, new_nonce

PACKAGE = Path(tui.__file__).parent
ALLOWED = ("tui", "tui.facts", "tui.collect", "tui.jobs")
START_SLEEP = (
    "import os, sys; from pathlib import Path; from tui.jobs.client import JobSpec, start_job;"
    "spec = JobSpec('training', ('sleep', '600'), '/', dict(os.environ));"
    "print(start_job(spec, Path(sys.argv[1])).folder.path, flush=True)"
)
COUNT = "import sys, tui.jobs.keeper; print('\\n'.join(sorted(sys.modules)))"


def test_the_keeper_needs_the_standard_library_and_few_of_our_modules() -> None:
    boot = f"import sys; sys.path.append({str(PACKAGE.parent)!r}); {COUNT}"
    command = [sys.executable, "-I", "-S", "-c", boot]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    ours = {name for name in loaded if name.partition(".")[0] == "tui"}
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"tui", "__main__"}
    assert foreign <= {"_sysconfigdata__linux_x86_64-linux-gnu"}
    collect = {name for name in ours if name.startswith("tui.collect.")}
    assert collect == {"tui.collect.proc", "tui.collect.cgroup"}
    assert {name.rpartition(".")[0] for name in ours} <= {"", *ALLOWED}
    assert not ours & {"tui.jobs.client", "tui.jobs.sampler"}


def test_an_instant_death_leaves_its_exit_code(jobs: Yard) -> None:
    for _ in range(3):
        record = jobs.run(("/bin/sh", "-c", "exit 42")).ended()
        assert record.exit is not None
        assert (record.exit.code, record.exit.signal, record.error) == (42, None, None)
        assert record.started_at is not None
        assert record.ended_at is not None
        assert record.ended_at >= record.started_at


def test_a_death_by_signal_is_told_apart(jobs: Yard) -> None:
    record = jobs.run(("/bin/sh", "-c", "kill -9 $$")).ended()
    assert record.exit is not None
    assert (record.exit.code, record.exit.signal) == (None, signal.SIGKILL)


@pytest.mark.parametrize(
    ("command", "cwd", "error"),
    [
        (("/no/such/program",), "/", "exec ENOENT /no/such/program"),
        (("/dev/null",), "/", "exec EACCES /dev/null"),
        (("sleep", "1"), "/no/such/folder", "chdir ENOENT /no/such/folder"),
        (("sleep", "a\0b"), "/", "exec EINVAL sleep"),
    ],
)
def test_a_command_that_cannot_run_is_named(
    tmp_path: Path, command: tuple[str, ...], cwd: str, error: str
) -> None:
    found = start_job(JobSpec("training", command, cwd, dict(os.environ)), tmp_path)
    record = wait_stopped(found.folder, lambda _: None, time.monotonic() + 10)
    assert (record.state, record.error, record.exit) == ("ended", error, None)


def test_what_the_command_gets(jobs: Yard, tmp_path: Path) -> None:
    code = (
        "import json, os, resource, signal, sys;"
        "print(json.dumps({'stdin': os.readlink('/proc/self/fd/0'), 'cwd': os.getcwd(),"
        "'fds': sorted(os.listdir('/proc/self/fd'))[:-1], 'leader': os.getsid(0) == os.getpid(),"
        "'core': resource.getrlimit(resource.RLIMIT_CORE), 'oom': open('/proc/self/oom_score_adj').read(),"
        "'mask': [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])],"
        "'ignored': [l.split()[1] for l in open('/proc/self/status') if l.startswith('SigIgn')][0],"
        "'env': dict(os.environ), 'comm': open('/proc/self/comm').read()}), flush=True);"
        "print('err', file=sys.stderr)"
    )
    environ = {"SECRET": "hunter2", "ODD": "\udcff", "LLAMAHERD_JOB": "other", "PATH": os.environ["PATH"]}
    job = jobs.run((sys.executable, "-I", "-S", "-c", code), environ=environ)
    record = job.ended()
    log = job.found.folder.log
    first, second = log.read_text().splitlines()
    got = json.loads(first)
    assert second == "err"
    assert got["stdin"] == "/dev/null"
    assert got["cwd"] == str(tmp_path)
    assert got["fds"] == ["0", "1", "2"]
    assert got["leader"]
    assert got["core"] == [0, 0]
    assert int(got["oom"]) == min(1000, int(Path("/proc/self/oom_score_adj").read_text()) + 300)
    assert got["mask"] == []
    # Python itself ignores SIGPIPE (13) and SIGXFSZ (25); nothing else is.
    assert int(got["ignored"], 16) == 1 << 12 | 1 << 24
    got["env"].pop("LC_CTYPE", None)  # Python adds it to itself in a plain locale
    assert got["env"] == {**environ, "LLAMAHERD_JOB": f"{record.id}.{record.nonce}"}
    assert "keep" not in got["comm"]
    for path in job.found.folder.path.rglob("*"):
        assert path == log or not path.is_file() or b"hunter2" not in path.read_bytes()
    assert (log.stat().st_mode & 0o777, job.found.folder.path.stat().st_mode & 0o777) == (0o600, 0o700)


def test_started_by_a_background_shell_it_still_reacts_to_sigint(tmp_path: Path) -> None:
    """A shell without job control starts background jobs with SIGINT ignored."""
    shell = ["/bin/sh", "-c", '"$@" & wait', "sh", sys.executable, "-c", START_SLEEP, str(tmp_path)]
    printed = subprocess.run(shell, check=True, capture_output=True, text=True).stdout
    folder = JobFolder(Path(printed.strip()))
    request_stop(folder, "stop")
    record = wait_stopped(folder, lambda _: None, time.monotonic() + 10)
    assert record.exit is not None
    assert record.exit.signal == signal.SIGINT
    assert record.stop is not None
    assert [step.name for step in record.stop.steps] == ["interrupt"]


def test_the_client_and_its_whole_session_may_be_killed(tmp_path: Path) -> None:
    code = f"{START_SLEEP}; import time; time.sleep(600)"
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert starter.stdout is not None
    folder = JobFolder(Path(starter.stdout.readline().strip()))
    os.killpg(starter.pid, signal.SIGHUP)
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    record = folder.read_record()
    assert record.main is not None
    assert record.keeper is not None
    assert folder.is_kept()
    for pid in (record.main.pid, record.keeper.pid):
        stat = PROC.stat(pid)
        assert stat is not None
        assert stat.alive
        assert stat.tty == 0
        assert stat.session != starter.pid
    # A record may be on its way to the disk at this very moment.
    keeper_files = set(PROC.open_files(record.keeper.pid)) - {f"{folder.record}.tmp"}
    assert {"/dev/null", str(folder.keeper_log), str(folder.path / "lock")} == keeper_files
    request_stop(folder, "force")
    assert wait_stopped(folder, lambda _: None, time.monotonic() + 10).state == "ended"


def test_the_caller_keeps_no_child_of_it(jobs: Yard) -> None:
    before = {stat.pid for stat in PROC.table().values() if stat.ppid == os.getpid()}
    jobs.start("sleeper").stop()
    after = {stat.pid for stat in PROC.table().values() if stat.ppid == os.getpid()}
    assert after <= before


def test_terminating_the_keeper_is_a_hurried_stop(jobs: Yard) -> None:
    job = jobs.start("stubborn", graces=Graces())
    os.kill(job.keeper_pid, signal.SIGTERM)
    record = job.ended(seconds=12)
    assert job.survivors() == set()
    assert record.stop is not None
    assert [step.name for step in record.stop.steps] == ["interrupt", "terminate", "kill"]
    assert record.stop.seconds is not None
    assert record.stop.seconds < 40


def test_a_stop_before_the_gate_opens_means_that_nothing_runs(tmp_path: Path) -> None:
    folder = create_folder(tmp_path, "x", time.time(), new_nonce())
    ran = tmp_path / "ran"
    template = start_job(JobSpec("training", ("true",), "/", {}), tmp_path / "other").record
    folder.write_record(replace(template, state="starting", main=None, exit=None))
    folder.request("stop")
    code = "import sys; from tui.jobs.keeper import main; main(sys.argv[1:])"
    keeper = [sys.executable, "-c", code, str(folder.path)]
    subprocess.run(keeper, check=True, input=json.dumps(["/usr/bin/touch", str(ran)]).encode() + b"\n")
    record = folder.read_record()
    assert (record.state, record.exit, record.main, record.started_at) == ("ended", None, None, None)
    assert record.stop is not None
    assert not ran.exists()


def test_a_keeper_without_an_order_runs_nothing(tmp_path: Path) -> None:
    folder = create_folder(tmp_path, "x", time.time(), new_nonce())
    template = start_job(JobSpec("training", ("true",), "/", {}), tmp_path / "other").record
    folder.write_record(replace(template, state="starting", main=None, exit=None))
    code = "import sys; from tui.jobs.keeper import main; sys.exit(main(sys.argv[1:]))"
    keeper = [sys.executable, "-c", code, str(folder.path)]
    done = subprocess.run(keeper, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, "no command" in done.stderr) == (1, True)


def test_an_upgrade_under_a_running_job_does_not_break_its_stop(
    jobs: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "site"
    shutil.copytree(PACKAGE, old / "tui", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(client, "_import_paths", lambda: [old])
    job = jobs.start("stubborn")
    shutil.rmtree(old)
    monkeypatch.undo()
    record = job.stop()
    assert job.survivors() == set()
    assert record.stop is not None
    assert [step.name for step in record.stop.steps] == ["interrupt", "terminate", "kill"]


def test_a_keeper_that_cannot_start_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_import_paths", lambda: [tmp_path / "nowhere"])
    with pytest.raises(LlamaherdError) as failed:
        start_job(JobSpec("training", ("true",), "/", {}), tmp_path)
    assert failed.value.code == "keeper_failed"
    assert "No module named 'tui" in str(failed.value.values["reason"])


def test_modules_in_the_callers_folder_shadow_nothing(
    jobs: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json.py", "signal.py", "tui.py"):
        (tmp_path / name).write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    record = jobs.run(("true",)).ended()
    assert record.exit is not None
    assert record.exit.code == 0


def test_a_job_that_will_not_die_is_stuck_and_named(jobs: Yard) -> None:
    """A frozen cgroup, as a hung driver, keeps even SIGKILL from working."""
    freezer = Path("/sys/fs/cgroup/freezer") / f"llamaherd-test-{os.getpid()}"
    try:
        freezer.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup to freeze: {error}")
    job = jobs.start("sleeper")
    main = job.record().main
    assert main is not None
    try:
        (freezer / "cgroup.procs").write_text(str(main.pid))
        (freezer / "freezer.state").write_text("FROZEN")
        request_stop(job.found.folder, "force")
        record = wait_stopped(job.found.folder, lambda _: None, time.monotonic() + 10)
        assert record.state == "stuck"
        assert record.stop is not None
        (left,) = record.stop.left
        assert (left.pid, left.state) == (main.pid, "D")
        assert job.found.folder.is_kept()
    finally:
        (freezer / "freezer.state").write_text("THAWED")
        record = wait_until(lambda: (r := job.record()).state == "ended" and r, 10, "ended after the thaw")
        freezer.rmdir()
    assert record.stop is not None
    assert record.stop.left == ()
    assert QUICK.kill <= (record.stop.seconds or 0)


def _changed_package(place: Path, changes: dict[str, tuple[str, str]]) -> Path:
    """A copy of the package in which a text of some files is replaced by another."""
    shutil.copytree(PACKAGE, place / "tui", ignore=shutil.ignore_patterns("__pycache__", "locales"))
    for name, (before, after) in changes.items():
        path = place / "tui" / name
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))
    return place


def test_a_kernel_that_gives_no_handles_is_told_in_the_report(
    jobs: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = (
        '        if hasattr(os, "pidfd_open"):\n',
        "        raise OSError(errno.ENOSYS, 'no handles')\n",
    )
    site = _changed_package(tmp_path / "site", {"jobs/stopper.py": (refusing[0], refusing[1] + refusing[0])})
    monkeypatch.setattr(client, "_import_paths", lambda: [site])
    job = jobs.start("stubborn")
    record = job.stop()
    assert job.survivors() == set()
    assert record.stop is not None
    # SIGINT is ignored and not sent; SIGTERM, SIGCONT and SIGKILL are.
    assert record.stop.unsure == 3


def test_what_a_stop_cannot_end_is_named_with_its_ports_and_cards(
    jobs: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keeper whose signals reach nobody, as those to a process that hangs in a driver."""
    deaf = (
        "        refusal = self.refusal(target.pid, descends=descends)\n",
        "        return SendResult('denied')\n",
    )
    card = ("        return minors(self.open_files(pid), prefix)\n", "        return frozenset({3})\n")
    changes = {
        "jobs/stopper.py": (deaf[0], deaf[1] + deaf[0]),
        "collect/proc.py": (card[0], card[1] + card[0]),
    }
    site = _changed_package(tmp_path / "site", changes)
    monkeypatch.setattr(client, "_import_paths", lambda: [site])
    code = (
        "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
        "print(s.getsockname()[1], flush=True); time.sleep(600)"
    )
    job = jobs.run((sys.executable, "-I", "-S", "-c", code))
    port = int(wait_until(lambda: job.found.folder.log.read_text().strip(), 10, "the port"))
    main = job.record().main
    assert main is not None
    request_stop(job.found.folder, "force")
    record = wait_stopped(job.found.folder, lambda _: None, time.monotonic() + 20)
    try:
        assert record.state == "stuck"
        assert record.stop is not None
        assert [member.pid for member in record.stop.left] == [main.pid]
        assert (record.stop.ports_open, record.stop.devices_held) == ((port,), (3,))
    finally:
        os.kill(main.pid, signal.SIGKILL)
    ended = wait_until(lambda: (r := job.record()).state == "ended" and r, 30, "ended after all")
    assert ended.stop is not None
    assert (ended.stop.left, ended.stop.ports_open, ended.stop.devices_held) == ((), (), ())
