"""Where job folders lie."""

from pathlib import Path

import pytest

from tui.facts.errors import LlamaherdError
from tui.jobs import roots
from tui.jobs.roots import jobs_folder, state_roots, writing_root


def test_the_order_of_the_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "_DATA_DISK", tmp_path)  # on the same disk as /, or not
    xdg = Path("/home/a/.local/state/llamaherd")
    own_disk = tmp_path.stat().st_dev != Path("/").stat().st_dev
    data = [tmp_path / ".llamaherd"] if own_disk else []
    assert state_roots({"HOME": "/home/a"}) == (*data, xdg)
    assert state_roots({"HOME": "/home/a", "XDG_STATE_HOME": "relative"}) == (*data, xdg)
    assert state_roots({"XDG_STATE_HOME": "/s"}) == (*data, Path("/s/llamaherd"))
    assert state_roots({"HOME": "/home/a", "LLAMAHERD_HOME": "/l"}) == (Path("/l"), *data, xdg)


def test_a_data_disk_counts_where_it_is_a_disk_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "_DATA_DISK", Path("/proc"))
    assert state_roots({"HOME": "/home/a"})[0] == Path("/proc/.llamaherd")
    monkeypatch.setattr(roots, "_DATA_DISK", Path("/no/such/disk"))
    assert state_roots({"HOME": "/home/a"}) == (Path("/home/a/.local/state/llamaherd"),)


def test_the_first_that_can_be_written_is_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    good = tmp_path / "good"
    assert writing_root([blocked, good, tmp_path / "never"]) == good
    assert list(jobs_folder(good).iterdir()) == []
    assert not (tmp_path / "never").exists()
    with pytest.raises(LlamaherdError) as refused:
        writing_root([blocked])
    assert refused.value.code == "state_not_writable"
    assert refused.value.values["path"] == str(blocked)
