"""Where job folders lie, for these settings in this environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui.jobs.roots import state_roots, writing_root
from tui.operate.settings import Settings


@dataclass(frozen=True, slots=True)
class Places:
    """``roots`` are read, the first usable one is for new jobs; ``chosen`` is the one that the
    environment or the settings name.
    """

    roots: tuple[Path, ...]
    chosen: Path | None = None

    @classmethod
    def of(cls, settings: Settings, environ: Mapping[str, str]) -> "Places":
        """``LLAMAHERD_HOME`` goes before the settings, and these before the usual places."""
        roots = state_roots(environ)
        named = bool(environ.get("LLAMAHERD_HOME"))
        if settings.state_dir is not None and not named:
            roots = tuple(dict.fromkeys((settings.state_dir, *roots)))
        return cls(roots, roots[0] if named or settings.state_dir else None)

    def write_root(self) -> Path:
        """Where a new job's folder goes. A place that was named is never replaced by another in silence.

        Raises:
            LlamaherdError: ``state_not_writable``.
        """
        return writing_root((self.chosen,) if self.chosen else self.roots)
