"""Quantiles that calibrate intervals, and how much of a correction is kept: what validation says, and no more."""

import numpy as np
import pytest

from charax.tasks.forecast import choose_correction
from charax.train import conformal_quantile, root_mean_square


def test_a_conformal_quantile_covers_new_scores():
    generator = np.random.default_rng(0)
    covered = [
        generator.exponential(size=200) <= conformal_quantile(generator.exponential(size=99), 0.95) for _ in range(100)
    ]
    assert 0.93 < np.mean(covered) < 0.97
    assert conformal_quantile(np.array([np.nan]), 0.95) == pytest.approx(1.96, abs=1e-3)


def test_quantiles_of_few_groups_cover_those_of_a_new_group():
    """Errors that are nearly the same within a series: without the number of series, intervals are too narrow."""
    generator, groups, covered = np.random.default_rng(0), 10, {None: [], 10: []}
    errors = lambda series: np.abs(generator.normal(size=(series, 1)) + 0.1 * generator.normal(size=(series, 20)))
    for _ in range(200):
        scores, new = errors(groups), errors(100)
        for each, found in covered.items():
            found.append(np.mean(new <= conformal_quantile(scores, 0.95, groups=each)))
    assert np.mean(covered[None]) < 0.925
    assert 0.935 < np.mean(covered[10]) < 0.965
    scores = np.arange(1.0, 100.0)
    assert conformal_quantile(scores, 0.95, groups=2) == conformal_quantile(scores, 0.95, groups=5)
    assert conformal_quantile(scores, 0.95, groups=5) == pytest.approx(95 * 2.776 / 1.960, rel=1e-3)


def test_a_correction_is_kept_if_it_is_better_by_more_than_chance():
    """Over the series: many windows of few of them, and missing values, say no more."""
    generator, series = np.random.default_rng(0), np.repeat(np.arange(10), 8)
    linear = generator.chisquare(1, (80, 3, 1))
    linear[::7] = np.nan
    half, none = 0.5 * linear, np.where(series < 9, 1.05, 0.1)[:, None, None] * linear
    assert np.nanmean(none) < np.nanmean(linear)  # because of one series of ten
    assert choose_correction({1.0: none, 0.5: half, 0.0: linear}, series) == 0.5
    assert choose_correction({1.0: none, 0.0: linear}, series) == 0
    assert choose_correction({1.0: none, 0.0: linear}, series // 5) == 1  # two series say nothing about chance
    assert choose_correction({1.0: 2 * linear, 0.0: linear}, series) == 0


def test_the_root_mean_square_is_of_what_is_known():
    assert root_mean_square(np.array([3.0, np.nan, 4.0])) == pytest.approx(12.5**0.5)
    assert root_mean_square(np.array([np.nan])) == 1
    assert root_mean_square(np.zeros(3)) > 0  # so that it has a logarithm
