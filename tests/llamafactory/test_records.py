from tui.llamafactory.records import split_records


def test_the_three_formats() -> None:
    lines = [
        "[INFO|trainer.py:2519] 2026-11-29 14:44:06,472 >> text",
        "[INFO|2026-11-29 14:44:06] llamafactory.data.loader:144 >> text",
        "[INFO|2026-11-29 14:44:06] trainer.py:2519 >> text",
    ]
    for line in lines:
        before, (record,) = split_records(line)
        assert before == ""
        assert (record.level, record.message) == ("INFO", "text")
        assert "2026-11-29 14:44:06" in record.head


def test_glued_records_and_an_empty_one() -> None:
    line = "half a line[INFO|a.py:1] 2026-11-29 14:44:06,472 >> one[WARNING|b.py:2] 2026 >> "
    before, records = split_records(line)
    assert before == "half a line"
    assert [(record.level, record.message) for record in records] == [("INFO", "one"), ("WARNING", "")]


def test_arrows_alone_are_no_record() -> None:
    for line in (">>> print(1)", "a >> b", "[note] x >> y", "plain"):
        assert split_records(line) == (line, [])
