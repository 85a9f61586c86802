"""`jointgrad demo`: the arm learns to throw, the page can be opened, and Ctrl-C keeps the best throw so far."""

import csv
import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.optimize import progress
from jointgrad.reproduce import throw


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    assert cli.main(["demo", "--out", str(out)]) == 0
    return out


def test_the_ball_rests_on_the_mark(folder):
    said = json.loads((folder / "results.json").read_text())
    assert said["distance"] < 0.02 and said["speed_at_end"] < 0.01
    assert said["distance_before"] > 1.0
    assert said["distance_at_half_step"] < 0.015  # 2 cm are wanted
    assert said["reason"] == "target" and said["iterations"] <= 25
    assert np.hypot(*np.subtract(said["end"], throw.LANDING)) == pytest.approx(said["distance"])


def test_learning_improves(folder):
    with (folder / "learning.csv").open() as file:
        best = [float(row["best"]) for row in csv.DictReader(file)]
    assert len(best) > 2 and best[-1] < 1e-2 * best[0]


def test_the_page_stands_alone(folder):
    page = (folder / "throw.html").read_text()
    assert "Before and after learning to throw" in page
    assert 'src="http' not in page and 'href="http' not in page
    assert (folder / "throw.npz").stat().st_size > 0


def test_interruption_keeps_the_best_throw(monkeypatch, tmp_path, capsys):
    end_iteration = progress.Progress.end_iteration

    def interrupted(self, loss):
        end_iteration(self, loss)
        if self.iteration == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "end_iteration", interrupted)
    assert cli.main(["demo", "--out", str(tmp_path)]) == 130
    said = json.loads((tmp_path / "results.json").read_text())
    assert said["reason"] == "interrupted" and said["distance"] < said["distance_before"]
    assert (tmp_path / "throw.html").exists()
    shown = capsys.readouterr().out
    assert "Interrupted." in shown and shown.splitlines()[-1].endswith("throw.html")


def test_bad_arguments_get_one_clear_line(tmp_path, capsys):
    assert cli.main(["demo", "--iterations", "0", "--out", str(tmp_path / "never")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "iterations must be 1 or more" in line
    assert not (tmp_path / "never").exists()


def test_the_hand_holds_the_ball_until_it_opens():
    """Nothing but the fingers holds the ball: it stays between them for as long as they are closed."""
    task = throw.task("physical")
    motion = jg.rollout(task.model, task.start, task.base, outputs=("link.position",))
    at = motion.outputs["link.position"]
    ball, fingers = task.model.link("ball"), [task.model.link(f"{side}_finger") for side in ("left", "right")]
    off = np.linalg.norm(at[:, ball] - at[:, fingers].mean(1), axis=-1)
    opens = round(throw.RELEASE / throw.DT)
    assert np.abs(off[:opens] - off[0]).max() < 1e-3
    assert off[opens + round(0.2 / throw.DT)] > off[0] + 0.05
