"""A bare Textual app with one widget a line, all of them changing once a second: the measure of cost."""

from textual.app import App, ComposeResult
from textual.widgets import Static


class Bare(App[None]):
    CSS = "Static { height: 1; }"

    def compose(self) -> ComposeResult:
        for at in range(44):
            yield Static(f"line {at}", id=f"line{at}", markup=False)

    def on_mount(self) -> None:
        self.tick = 0
        self.set_interval(1.0, self.change)

    def change(self) -> None:
        self.tick += 1
        for at in range(44):
            text = f"line {at} value {(self.tick * 37 + at * 11) % 1000} more {(self.tick * 13 + at) % 100} %"
            self.query_one(f"#line{at}", Static).update(text, layout=False)


if __name__ == "__main__":
    Bare().run()
