"""A record to fill job folders with."""

from tui.facts.job import JobRecord

RECORD = JobRecord(
    id="x",
    nonce="n",
    kind="training",
    command=("true",),
    cwd="/",
    environment={},
    config=None,
    config_hash=None,
    output_dir=None,
    gpus=(),
    created_at=1.0,
)
