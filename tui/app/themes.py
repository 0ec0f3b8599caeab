"""The colours. Every one is named by its meaning; the stylesheet gives them to inks and frames."""

from textual.theme import Theme

DARK = Theme(
    name="llamaherd-dark",
    primary="#6cb6ff",
    secondary="#8fb8de",
    accent="#6cb6ff",
    foreground="#d3d9e3",
    background="#10141b",
    surface="#161b24",
    panel="#1d2430",
    success="#7fce8f",
    warning="#e6b65c",
    error="#f0757c",
    dark=True,
    variables={
        "herd-dim": "#8a94a6",
        "herd-label": "#71809a",
        "herd-frame": "#323c4b",
        "herd-track": "#323c4b",
        "herd-heat": "#5f9bd1",
        "herd-cursor": "#24344a",
        "footer-key-foreground": "#6cb6ff",
    },
)

LIGHT = Theme(
    name="llamaherd-light",
    primary="#0b62b8",
    secondary="#35689c",
    accent="#0b62b8",
    foreground="#1f2630",
    background="#f7f8fa",
    surface="#eef0f4",
    panel="#e4e8ee",
    success="#1b7f37",
    warning="#96610a",
    error="#b3262e",
    dark=False,
    variables={
        "herd-dim": "#5b6675",
        "herd-label": "#64748b",
        "herd-frame": "#c3cad4",
        "herd-track": "#c3cad4",
        "herd-heat": "#3d7ab5",
        "herd-cursor": "#d3e3f5",
        "footer-key-foreground": "#0b62b8",
    },
)

THEMES = (DARK, LIGHT)
