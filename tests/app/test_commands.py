"""Every deed by its keys and by the mouse, on a recorded feed."""

import re
from dataclasses import replace

import pytest
from support.opened import Opened, open_screen
from support.recording import RUN, failed_job, job, one_gpu, service, stop_report

from tui.app.command import Command
from tui.app.commands import COMMANDS, GLOBAL, StopRun
from tui.app.log_commands import IN_LOG
from tui.app.options import Options
from tui.app.sheet import Sheet
from tui.app.themes import DARK, LIGHT
from tui.app.widgets.lines import FootLine
from tui.facts.errors import LlamaherdError
from tui.text.cells import width
from tui.text.translate import set_language, tr


def choice(opened: Opened, name: str) -> list[str]:
    """The keys that lead to a choice of the sheet in front."""
    screen = opened.app.screen
    assert isinstance(screen, Sheet)
    names = [item.name for item in screen.choices(opened.app.scene)]
    return ["down"] * names.index(name) + ["enter"]


def test_every_key_is_bound_once() -> None:
    for commands in (GLOBAL, IN_LOG):
        keys = [key for command in commands for key in command.keys]
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_no_command_needs_control(command: type[Command]) -> None:
    assert not command.keys[0].startswith("ctrl")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_labels_fit_a_footer(command: type[Command], language: str) -> None:
    set_language("zh" if language == "zh" else "en")
    assert 0 < width(tr(command.label)) <= 12
    assert tr(command.help)


async def test_the_footer_offers_what_can_be_done_now() -> None:
    async with open_screen() as opened:
        assert "X stop" in opened.text
    idle = replace(one_gpu(), jobs=())
    async with open_screen(idle) as opened:
        assert "X stop" not in opened.text
        assert "n start" in opened.text


async def test_owners_and_back() -> None:
    async with open_screen() as opened:
        await opened.press("2")
        assert opened.screen_name == "OwnersScreen"
        assert "no visible process explains this memory" in opened.text
        await opened.press("escape")
        assert opened.screen_name == "Overview"


async def test_number_keys_go_from_view_to_view() -> None:
    async with open_screen() as opened:
        await opened.press("3", "2")
        assert opened.screen_name == "OwnersScreen"
        await opened.press("1")
        assert opened.screen_name == "Overview"
        assert len(opened.app.screen_stack) == 1


async def test_help_lists_every_command_and_the_panel_in_focus() -> None:
    async with open_screen(size=(110, 40)) as opened:
        await opened.press("question_mark")
        for command in COMMANDS:
            if command.name != "fail_demo":
                assert re.search(rf"\b{re.escape(tr(command.label))}\b", opened.text), command.name
        assert "Jobs: what llamaherd started" in opened.text
        assert "ctrl" not in opened.text.lower()


async def test_the_language_is_switched_at_once() -> None:
    async with open_screen() as opened:
        assert "GPU memory" in opened.text
        await opened.press("L")
        assert "显存" in opened.text
        assert "English" in opened.text
        await opened.press("L")
        assert "GPU memory" in opened.text


async def test_the_theme_is_switched() -> None:
    async with open_screen() as opened:
        await opened.press("T")
        assert opened.app.theme == LIGHT.name
        await opened.press("T")
        assert opened.app.theme == DARK.name


async def test_pausing_stops_drawing_and_not_collecting() -> None:
    async with open_screen(one_gpu(0), one_gpu(40)) as opened:
        await opened.press("p")
        assert "drawing paused" in opened.text
        before = opened.text
        await opened.tick()
        assert opened.text == before
        assert opened.app.scene.snapshot == one_gpu(40)
        await opened.press("p")
        assert "50/300" in opened.text


async def test_leaving_needs_one_key_and_no_answer() -> None:
    async with open_screen() as opened:
        await opened.press("q")
        assert not opened.app.is_running


async def test_a_footer_key_can_be_clicked() -> None:
    async with open_screen() as opened:
        foot = opened.app.screen.query_one(FootLine)
        await opened.pilot.click(FootLine, offset=(foot.shown.index("owners") + 1, 0))
        await opened.settle()
        assert opened.screen_name == "OwnersScreen"


async def test_the_palette_finds_commands() -> None:
    async with open_screen() as opened:
        await opened.press("colon")
        assert opened.screen_name == "CommandPalette"
        await opened.press(*"owners")
        await opened.pilot.pause(0.3)
        await opened.press("enter")
        await opened.pilot.pause(0.3)
        assert opened.screen_name == "OwnersScreen"


async def test_the_row_of_the_cursor_is_the_job_in_focus() -> None:
    async with open_screen() as opened:
        await opened.press("down")
        assert opened.app.scene.main == failed_job()
        assert "GPU memory ran out" in opened.text
        await opened.press("enter")
        assert opened.screen_name == "LogScreen"


# Starting


async def test_a_start_is_previewed_and_confirmed() -> None:
    async with open_screen() as opened:
        await opened.press("n")
        assert opened.screen_name == "StartScreen"
        assert "llamafactory-cli train" in opened.text
        assert "LLAMABOARD_ENABLED=1" in opened.text
        await opened.press("enter")
        assert opened.screen_name == "ConfirmStart"
        assert "Another training runs already" in opened.text
        assert opened.desk.started == []
        await opened.press(*choice(opened, "start"))
        assert [path.name for path in opened.desk.started] == ["qwen-lora.yaml"]
        assert opened.screen_name == "Overview"
        assert opened.app.scene.chosen == RUN


async def test_enter_on_the_question_starts_nothing() -> None:
    async with open_screen() as opened:
        await opened.press("n", "enter", "enter")
        assert opened.desk.started == []
        assert opened.screen_name == "StartScreen"


async def test_a_config_that_cannot_start_says_why_and_cannot_be_confirmed() -> None:
    async with open_screen() as opened:
        await opened.press("n", "down")
        assert "broken.yaml" in opened.text
        assert "What would run" in opened.text
        assert "llamafactory-cli" not in opened.text
        await opened.press("enter")
        assert opened.screen_name == "StartScreen"


async def test_a_refused_start_is_explained() -> None:
    async with open_screen() as opened:
        opened.desk.refusal = LlamaherdError("keeper_failed", path="/x", reason="no space")
        await opened.press("n", "enter", *["down", "enter"])
        assert "no space" in opened.text
        await opened.press("enter")
        assert opened.screen_name == "StartScreen"


# Stopping


async def test_a_stop_names_the_target_and_the_loss_and_cancel_is_chosen() -> None:
    async with open_screen() as opened:
        await opened.press("X")
        assert "Stop qwen-lora.yaml" in opened.text
        assert "PID 4321" in opened.text
        assert "Loses 17 steps; last complete checkpoint 50." in opened.text
        await opened.press("enter")
        assert opened.desk.stopped == []
        assert opened.screen_name == "Overview"


@pytest.mark.parametrize(("name", "kind"), [("stop", "stop"), ("keep", "keep_weights"), ("force", "force")])
async def test_each_way_of_stopping(name: str, kind: str) -> None:
    async with open_screen() as opened:
        await opened.press("f9")
        await opened.press(*choice(opened, name))
        assert opened.desk.stopped == [(RUN, kind)]
        assert "Waiting for the keeper" in opened.text


async def test_a_stop_is_followed_until_everything_is_gone() -> None:
    stopping = replace(one_gpu(1), jobs=(job(state="stopping", stop=stop_report()),))
    done = job(state="ended", ending="stopped", members=(), keeper=False, stop=stop_report(done=True))
    async with open_screen(one_gpu(0), stopping, replace(one_gpu(2), jobs=(done,))) as opened:
        await opened.press("X", *["down", "enter"])
        await opened.tick()
        assert "Interrupted the trainer (SIGINT; torchrun: SIGTERM), PID 4321" in opened.text
        assert "2 processes alive" in opened.text
        assert "End it by force" in opened.text
        await opened.tick()
        assert "Every process of it is gone" in " ".join(opened.text.replace("│", " ").split())
        await opened.press("enter")
        assert opened.screen_name == "Overview"


async def test_a_refused_stop_is_explained() -> None:
    async with open_screen() as opened:
        opened.desk.refusal = LlamaherdError("job_ended", job=RUN)
        await opened.press("X", "down", "enter")
        assert RUN in opened.text
        assert opened.desk.stopped == []


async def test_processes_that_cannot_be_ended_are_named_and_nothing_is_claimed() -> None:
    member = replace(job().members[0], state="D", wchan="nvidia_ioctl")
    stuck = job(state="stuck", stop=replace(stop_report(), left=(member,)))
    async with open_screen(replace(one_gpu(), jobs=(stuck,))) as opened:
        await opened.press("X")
        assert "outlived every signal" in opened.text
        assert "PID 4321" in opened.text


async def test_with_several_jobs_one_must_be_chosen() -> None:
    other = job(id="20260528-201300-other", config="other.yaml", started_at=1.0)
    ended = failed_job()
    picture = replace(one_gpu(), jobs=(job(), other, ended))
    async with open_screen(picture) as opened:
        await opened.press("down", "down", "X")
        assert opened.screen_name == "Overview"
        await opened.press("up", "X")
        assert "Stop other.yaml" in opened.text


async def test_a_run_from_elsewhere_never_slips_under_the_key() -> None:
    newer = replace(service(), id="77:7700", kind="training", started_at=(job().started_at or 0.0) + 60)
    async with open_screen(one_gpu(), replace(one_gpu(1), foreign=(newer,))) as opened:
        await opened.tick()
        assert opened.app.scene.main == opened.app.scene.job(RUN)
        await opened.press("X")
        assert "Stop qwen-lora.yaml" in opened.text


async def test_a_service_says_what_its_stop_means() -> None:
    async with open_screen(replace(one_gpu(), jobs=(), foreign=(service(),))) as opened:
        await opened.press("X")
        assert "loses the connection" in opened.text


async def test_the_choices_are_in_sight_however_many_processes_there_are() -> None:
    members = tuple(replace(job().members[0], pid=5000 + at) for at in range(40))
    async with open_screen(replace(one_gpu(), jobs=(job(members=members),)), size=(60, 18)) as opened:
        await opened.press("X")
        assert "Cancel: let it run on" in opened.text
        assert "End it by force" in opened.text


async def test_read_only_blocks_keys_palette_and_footer() -> None:
    async with open_screen(options=Options(readonly=True)) as opened:
        assert "read only" in opened.text
        assert "X stop" not in opened.text
        await opened.press("X", "n")
        assert opened.screen_name == "Overview"
        assert not StopRun.available(opened.app)
        await opened.press("question_mark")
        assert "(read only: not now)" in opened.text


async def test_escape_closes_a_question() -> None:
    async with open_screen() as opened:
        await opened.press("X", "escape")
        assert opened.screen_name == "Overview"
        assert opened.desk.stopped == []
