"""Data sets: embedded, downloaded, and the user's own files."""

from charax.data.augmentation import augment_batch
from charax.data.catalogue import DATASETS, Source
from charax.data.dataset import Augment, Dataset, Normalisation, Split
from charax.data.errors import DataError
from charax.data.fetching import fetch
from charax.data.inputs import read_inputs
from charax.data.loading import load_dataset
from charax.data.samples import SampleSet, load_samples
from charax.data.splitting import stratified_split
from charax.data.toys import TOYS, draw_toy

__all__ = [
    "DATASETS",
    "TOYS",
    "Augment",
    "DataError",
    "Dataset",
    "Normalisation",
    "SampleSet",
    "Source",
    "Split",
    "augment_batch",
    "draw_toy",
    "fetch",
    "load_dataset",
    "load_samples",
    "read_inputs",
    "stratified_split",
]
