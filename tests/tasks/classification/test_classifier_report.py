"""The report of a classifier."""

import numpy as np
import pytest

from charax.plotting import confusion_matrix
from charax.train import load_run


@pytest.fixture(scope="module")
def sections(classifier):
    run = load_run(classifier)
    return {each.title: each for each in run.trained.task.report(run.trained.model, run.splits, data="blobs")}


def test_it_shows_confusion_characteristics_and_trajectories(sections):
    assert list(sections) == ["Confusion matrix", "Learned characteristics x(s)", "Trajectories u(s)"]


def test_the_confusion_matrix_counts_what_the_accuracy_counts(sections, classifier):
    run, section = load_run(classifier), sections["Confusion matrix"]
    counts = np.asarray(section.figure.data[0].text)
    assert counts.sum() == len(run.splits.test.targets)
    assert counts.trace() / counts.sum() == pytest.approx(run.summary()["accuracy"])
    wrong = counts.sum() - counts.trace()
    assert section.text.startswith(f"{wrong} of {counts.sum()} test samples")


def test_every_cell_has_the_rows_behind_it(sections):
    section = sections["Confusion matrix"]
    keys, counts = section.figure.data[0].customdata, np.asarray(section.figure.data[0].text)
    for true, predicted in np.argwhere(counts):
        rows = section.details.rows[keys[true][predicted]]
        assert len(rows) == min(counts[true, predicted], 24)
        assert all(row[1:3] == [str(true), str(predicted)] for row in rows)
    assert section.details.columns == ["row", "true", "predicted", "probability", "x1", "x2"]


def test_curves_have_a_frame_per_point_and_a_colour_per_class(sections):
    figure = sections["Learned characteristics x(s)"].figure
    assert len(figure.frames) == 33
    assert [trace.name for trace in figure.data if trace.showlegend] == ["0", "1"]
    last = np.asarray(figure.frames[-1].data[0].x)
    assert (last == 1).all()  # two characteristic dimensions over s
    states = sections["Trajectories u(s)"].figure
    first, last = (np.asarray(states.frames[i].data[0].y) for i in (0, -1))
    assert not np.allclose(first, last)


def test_a_confusion_matrix_has_true_classes_in_its_rows():
    counts = confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 3)
    assert counts.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
