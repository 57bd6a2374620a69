"""Data sets: embedded, downloaded, and the user's own files."""

from charax.data.augmentation import augment_batch, distort_batch
from charax.data.catalogue import DATASETS, Source
from charax.data.dataset import Augment, Dataset, Normalisation, Split
from charax.data.errors import DataError
from charax.data.fetching import fetch
from charax.data.inputs import read_inputs
from charax.data.loading import load_dataset
from charax.data.samples import SampleSet, load_samples
from charax.data.series import (
    HIDDEN,
    Observations,
    SeriesColumns,
    SeriesData,
    load_series,
    read_asked,
    sample_hidden,
)
from charax.data.solutions import BOXES, Samples, SolutionData, load_solution, read_points, sample_problem
from charax.data.splitting import stratified_split
from charax.data.toys import TOYS, draw_toy

__all__ = [
    "BOXES",
    "DATASETS",
    "HIDDEN",
    "TOYS",
    "Augment",
    "DataError",
    "Dataset",
    "Normalisation",
    "Observations",
    "SampleSet",
    "Samples",
    "SeriesColumns",
    "SeriesData",
    "SolutionData",
    "Source",
    "Split",
    "augment_batch",
    "distort_batch",
    "draw_toy",
    "fetch",
    "load_dataset",
    "load_samples",
    "load_series",
    "load_solution",
    "read_asked",
    "read_inputs",
    "read_points",
    "sample_hidden",
    "sample_problem",
    "stratified_split",
]
