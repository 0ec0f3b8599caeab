import math

from tui.facts.curve import Curve
from tui.facts.training import MetricPoint
from tui.insight.curves import fitted, memory_curves, metric_curves

MIB = float(1 << 20)


def test_each_figure_that_was_logged_with_its_step() -> None:
    points = [
        MetricPoint(5, loss=3.0, learning_rate=1e-4, grad_norm=0.5),
        MetricPoint(10, loss=math.nan, grad_norm=math.inf),
        MetricPoint(10, eval_loss=2.5),
        MetricPoint(None, loss=9.0),
        MetricPoint(15, loss=2.0),
    ]
    loss, evaluation, rate, norm = metric_curves(points)
    assert loss == Curve("loss", ((5.0, 3.0), (15.0, 2.0)), broken=(10.0,))
    assert evaluation == Curve("eval_loss", ((10.0, 2.5),))
    assert rate.points == ((5.0, 1e-4),)
    assert norm == Curve("grad_norm", ((5.0, 0.5),), broken=(10.0,))
    assert metric_curves([]) == ()


def test_a_step_that_is_done_again_counts_once() -> None:
    points = [MetricPoint(40, loss=2.0), MetricPoint(45, loss=1.9), MetricPoint(45, loss=1.8)]
    assert metric_curves(points)[0].points == ((40.0, 2.0), (45.0, 1.8))


def row(time: str, used: str, kind: str = "sample", uuid: str = "GPU-1") -> dict[str, str]:
    return {"time": time, "uuid": uuid, "used_mib": used, "kind": kind}


def test_memory_of_each_card() -> None:
    rows = [
        row("100", "512"),
        row("101", "1024"),
        row("101", "x"),
        row("102", "9", "min"),
        row("102", "2048", "max"),
    ]
    rows += [row("100", "1", uuid="GPU-2"), {"time": "1"}]
    one, two = memory_curves(rows)
    assert one.points == ((0.0, 512 * MIB), (1.0, 1024 * MIB), (2.0, 2048 * MIB))
    assert (two.label, two.points) == ("GPU-2", ((0.0, MIB),))


def test_as_many_points_as_there_are_columns() -> None:
    curve = Curve("loss", tuple((float(n), float(n % 2)) for n in range(1000)), broken=(7.0,))
    shown = fitted(curve, 50)
    assert len(shown.points) == 50
    assert all(0.4 <= value <= 0.6 for _at, value in shown.points)
    assert shown.broken == (7.0,)
    assert fitted(shown, 50) == shown
