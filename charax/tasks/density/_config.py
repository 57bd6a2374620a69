"""The config of `charax train density`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from charax import data, models, solve, train
from charax.data import Separator
from charax.models import FlowMethod
from charax.tasks import density
from charax.tasks.density._designs import preset_design
from charax.tasks.density._names import CouplingName, Objective, PathName, PixelsName, TimesName
from charax.tasks.density._unused import find_unused
from charax.train import (
    ADDED_LATER,
    BATCH_SIZE,
    EPOCHS,
    AbstractConfig,
    LoopConfig,
    OptimizerConfig,
    SolverConfig,
    Splits,
    TaskData,
    absolute_path,
    check_positive,
    check_range,
    check_sizes,
    fill,
)

if TYPE_CHECKING:
    from charax.tasks.density._spec import DensityBatch, DensitySpec
    from charax.tasks.density._task import DensityTask
    from charax.tasks.density._transport import TransportSpec, TransportTask

Trace = Literal["exact", "hutchinson", "gaussian", "hutch++"]
_MATCHING_PASSES = 4
_MATCHING_STEPS = 100
"""Least numbers of passes over the data, and of steps, in an epoch of flow matching: the evaluation at its end solves,
and would take most of the time."""
_TOY_MATCHING = OptimizerConfig(learning_rate=1e-2)
_EVALUATED, _TESTED_POINTS = 1_000, 10_240
"""Images of a split and validation points of a toy, and its test points, that are evaluated if the flow is matched."""
_POINTS = 25_600
"""Training points of a toy. Flow matching takes new ones in all of its passes."""


@dataclass(frozen=True)
class DensityConfig(AbstractConfig):
    """A continuous normalizing flow, its data and its training.

    ```python
    import charax

    data = charax.DensityConfig(data="digits", method="node").load_data()
    assert data.spec.loss_name == "bits_per_dim"
    ```
    """

    name: ClassVar[str] = "density"

    data: str = "circles"
    """Data set (circles, moons, pinwheel, checkerboard, eight-gaussians, digits, mnist, cifar10, svhn), or the path of
    an .npz or .npy, a table of numbers (.csv, .tsv, .txt, .parquet, .xlsx), or a folder, a .zip or a .tar of images."""
    separator: Separator | None = None
    """Separator of the columns of a text file. By default found out."""
    method: FlowMethod = "c-node"
    """The field of the flow."""
    preset: Literal["small", "paper"] = "small"
    """Sizes and solver. small: seconds or minutes of training. paper: the paper's layers and solver, for circles,
    mnist, cifar10 and svhn."""
    width: int | None = None
    """Width of the networks, instead of the preset's."""
    characteristic_dim: int | None = None
    """Dimension k of the characteristic, instead of the preset's."""
    blocks: int | None = None
    """Flows per scale of an image flow, instead of the preset's."""
    end_time: float | None = None
    """End of the integration interval, instead of the preset's; for points and tables."""
    sharpness: float | None = None
    """Factor inside the activations, instead of the preset's: 8 for toys that are trained by likelihood, else 1. Larger
    for densities with thin parts; for points and tables."""
    frequencies: int | None = None
    """Number of sines and cosines in front of the networks, instead of the preset's: 0; with flow matching 32 for toys,
    8 for tables."""
    frequency_scale: float | None = None
    """Standard deviation of their frequencies, instead of the preset's: 4 for toys, 2 for tables, 1 with a source;
    larger for densities with thinner parts."""
    conditional: bool = False
    """Learn a density per class, for tables with classes (y, or a column called target); with flow matching also for
    images with classes."""
    hidden_classes: float | None = None
    """With conditional: the fraction of training samples whose class is hidden from the flow, so that samples can be
    guided (`charax sample --guidance`). By default 0.1 for images, 0 for everything else."""
    context: tuple[str, ...] = ()
    """Learn the density of the other columns of a table given these."""
    objective: Objective = "likelihood"
    """What is minimized. likelihood: the negative log-likelihood, with a solve in every step. matching: the flow
    matching loss, without a solve. matching+likelihood: matching, then the likelihood in the last quarter of the
    epochs. The weights are selected by the likelihood of the validation split in any case."""
    source: str | None = field(default=None, metadata=ADDED_LATER)
    """Flow matching: learn a flow between the data and this data set (a toy, or a table or .npz with as many columns)
    instead of the normal distribution. It has no likelihood: the weights are selected by the matching loss of the
    validation split."""
    path: PathName | None = None
    """Flow matching: the path from a sample to its partner in the normal distribution. By default linear."""
    coupling: CouplingName | None = None
    """Flow matching: how partners are chosen. ot: close to optimal transport between all samples of an epoch, within
    each class or context; the default for points and tables without context. independent: as they are drawn."""
    times: TimesName | None = None
    """Flow matching: the distribution of the times. By default data: logit-normal with most of the times near the
    data; logit-normal, around the middle, for whitened images; uniform with a source."""
    pixels: PixelsName | None = field(default=None, metadata=ADDED_LATER)
    """Flow matching of images: how pixels become the state of the flow. quantiles: each through a histogram of its own
    to a normal distribution, so that the flow learns how pixels depend on each other; the default of grey images.
    whitened: the correlations of neighbours and colours are removed by a cosine transform; the default of colour
    images. logit: the logit of each, standardized."""
    passes: int | None = None
    """Passes over the training data per epoch, that is between two evaluations. By default 1; 4 for flow matching of
    tables and of toys whose points are given, and more for small ones."""
    trace: Trace | None = None
    """How the trace is computed in training. By default exact for points and tables, hutchinson for images."""
    probes: int | None = None
    """Random directions of hutchinson and gaussian, in training and in the evaluation of more than 16 numbers: the
    error of the estimate falls with the root of their number. By default 1."""
    kinetic_penalty: float = 0.0
    """Weight of the kinetic energy: straighter trajectories, fewer function evaluations."""
    jacobian_penalty: float = 0.0
    """Weight of the squared Frobenius norm of the field's Jacobian: smoother fields, fewer function evaluations."""
    points: int | None = None
    """Training points of a toy data set. By default 25,600; 102,400 with flow matching, which
    overfits fewer."""
    evaluated: int | None = None
    """Maximum number of validation samples, and of test samples, that are evaluated: the first ones after shuffling. By
    default all; with flow matching, whose evaluation may take longer than its training, 1,000 images of either split,
    and 1,000 validation points and 10,240 test points of a toy."""
    shrink: int = 1
    """Average squares of this many pixels per side first."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate."""
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(weight_decay=0.0, schedule="cosine", clip=10.0)
    )
    """How to optimize. The learning rate is 1e-2 for flow matching of toys, else 5e-3."""
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=10, batch_size=256))
    """How long to train."""

    def __post_init__(self):
        if (self.loop.batch_size or BATCH_SIZE) < 2:
            raise ValueError("batch_size must be at least 2: the gradient of one sample says little about a density")
        check_range(
            self,
            least={
                "kinetic_penalty": 0,
                "jacobian_penalty": 0,
                "width": 1,
                "characteristic_dim": 1,
                "blocks": 1,
                "points": 10,
                "evaluated": 1,
                "shrink": 1,
                "passes": 1,
                "frequencies": 0,
                "probes": 1,
                "hidden_classes": 0,
            },
        )
        if self.hidden_classes is not None and not (self.conditional and self.hidden_classes < 1):
            raise ValueError("hidden_classes is a fraction below 1 of samples with classes: add --conditional")
        if self.probes is not None and self.trace in ("exact", "hutch++"):
            raise ValueError(f"probes are those of hutchinson and gaussian: the trace {self.trace} has none")
        check_positive(self, "sharpness", "end_time", "frequency_scale")
        check_sizes(self, width="width", characteristic_dim="k", blocks="blocks", points="lines", frequencies="width")
        self._check_source()
        if self.objective == "likelihood":
            for name in ("path", "coupling", "times"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is a part of flow matching: add --objective matching, or leave it out")
        if self.objective == "matching" and (self.kinetic_penalty or self.jacobian_penalty):
            raise ValueError(
                "the penalties are integrals along a solve, which flow matching does not make: use --objective "
                "likelihood or matching+likelihood, or leave them out"
            )
        if self.objective == "matching+likelihood" and (self.loop.epochs or EPOCHS) < 2:
            raise ValueError("matching+likelihood needs at least 2 epochs: one of matching, then one of likelihood")

    def _check_source(self) -> None:
        if self.source is None:
            return
        if self.objective != "matching":
            raise ValueError("a source other than noise has no likelihood: add --objective matching")
        defaults = {
            "pixels": None,
            "conditional": False,
            "context": (),
            "trace": None,
            "probes": None,
            "preset": "small",
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                raise ValueError(f"a flow from a source other than noise has no {name}: leave it out")

    @property
    def label(self) -> str:
        """A short name for a run with this config."""
        shrunk = f"-by{self.shrink}" if self.shrink > 1 else ""
        numbers = (
            ("sharp", self.sharpness),
            ("kinetic", self.kinetic_penalty),
            ("jacobian", self.jacobian_penalty),
        )
        changed = "".join(f"-{name}{value:g}" for name, value in numbers if value)
        objective = "" if self.objective == "likelihood" else f"-{self.objective}"
        if self.source is not None:
            objective = f"-from-{Path(self.source).name.split('.')[0]}"
        return f"{self.name}-{self.data_label}{shrunk}-{self.method}{objective}{changed}"

    @property
    def _is_matched_toy(self) -> bool:
        return self.objective != "likelihood" and self.data in data.TOYS

    @property
    def _has_flips(self) -> bool:
        return self.data in data.DATASETS and data.DATASETS[self.data].augmentation == "flip-crop"

    def task_type(self) -> type["DensityTask"] | type["TransportTask"]:
        return density.DensityTask if self.source is None else density.TransportTask

    def _load(self, name: str) -> "data.DensityData":
        return data.load_density_data(
            name,
            seed=self.loop.seed,
            points=self.points or _POINTS * (1 if self.objective == "likelihood" else _MATCHING_PASSES),
            shrink=self.shrink,
            labelled=self.conditional,
            separator=self.separator,
        )

    def load_data(self) -> TaskData:
        loaded = self._load(self.data)
        if self.source is not None:
            return self._load_transport(loaded, self._load(self.source))
        if self.conditional and not loaded.classes:
            raise ValueError(f"{self.data} has no classes to condition on: leave --conditional out")
        if self.hidden_classes and self.context:
            raise ValueError("hidden_classes would hide the columns of --context, too: leave one of them out")
        if self.conditional and loaded.levels is not None and self.objective == "likelihood":
            raise ValueError(
                "the multi-scale flow of images cannot be conditioned on classes: add --objective matching, or leave "
                "--conditional out"
            )
        spec = density.DensitySpec.from_data(
            loaded, conditional=self.conditional, flip=self._has_flips, context=self.context
        )
        if self.pixels is not None and (loaded.levels is None or self.objective == "likelihood"):
            raise ValueError("pixels are scaled for flow matching of images: leave --pixels out, or match images")
        matched_image = loaded.levels is not None and self.objective != "likelihood"
        if matched_image:
            spec = density.describe_pixels(spec, loaded.train.inputs, self.pixels)
        splits = Splits(*(spec.batch(*split) for split in (loaded.train, loaded.validation, loaded.test)))
        few = _EVALUATED if matched_image or self._is_matched_toy else None
        tested = _TESTED_POINTS if self._is_matched_toy else few
        held_out = {
            name: _first(getattr(splits, name), self.evaluated or count)
            for name, count in {"validation": few, "test": tested}.items()
        }
        return TaskData(
            splits._replace(train=self._repeat(splits.train, spec.levels, self._is_coupled(spec)), **held_out),
            spec,
            loaded.notes,
        )

    def complete(self, data: TaskData) -> tuple[Self, tuple[str, ...]]:
        optimizer = fill(self.optimizer, _TOY_MATCHING) if self._is_matched_toy else self.optimizer
        return super(DensityConfig, replace(self, optimizer=optimizer)).complete(data)

    def unused(self, loaded: TaskData) -> Mapping[tuple[str, ...], str]:
        return find_unused(self, loaded.spec)

    def _load_transport(self, loaded: "data.DensityData", source: "data.DensityData") -> TaskData:
        source = source.order_columns(loaded.columns)
        spec = density.TransportSpec.from_data(loaded, source, seed=self.loop.seed, separator=self.separator)
        matching = self._matching(None, coupled=True, times="uniform")
        pairs = [
            matching.pair(*(getattr(each, name) for each in (loaded, source)))
            for name in ("train", "validation", "test")
        ]
        trained, *held_out = pairs
        splits = Splits(self._repeat(trained, None, coupled=True), *(_first(each, self.evaluated) for each in held_out))
        return TaskData(splits, spec, (*loaded.notes, *density.TransportSpec.pairing_notes(loaded, source)))

    def _repeat(self, split: "DensityBatch", levels: int | None, coupled: bool) -> "DensityBatch":
        """Repeat the rows of an epoch of matching, which is short, where its evaluation is not."""
        rows, passes = len(split.inputs), self.passes
        if isinstance(split.inputs, data.AbstractStoredRows) or (passes is not None and not coupled):
            return split  # the epoch goes through the same rows several times
        if passes is None:
            new_points = self.data in data.TOYS and self.points is None
            short = self.objective != "likelihood" and levels is None and not new_points
            passes = (
                max(_MATCHING_PASSES, -(-_MATCHING_STEPS * (self.loop.batch_size or BATCH_SIZE) // rows))
                if short
                else 1
            )
        if passes == 1:
            return split
        order = train.repeat_rows(rows, passes * rows)
        return split._replace(**{name: part[order] for name, part in split._asdict().items() if part is not None})

    def build_task(self, spec: "DensitySpec | TransportSpec") -> "DensityTask | TransportTask":
        if isinstance(spec, density.TransportSpec):
            design, solver = self.design(spec.shape, None)
            return density.TransportTask(
                design=design,
                solver=self.solver.build(solver, exact=True),
                spec=spec,
                matching=self._matching(None, coupled=True, times="uniform"),
            )
        design, solver = self.design(spec.shape, spec.levels, classes=len(spec.classes) + len(spec.context))
        if isinstance(design, models.SingleScaleFlowDesign):
            design = replace(design, **spec.scaling)
        hidden = 0.1 if spec.classes and spec.levels is not None else 0.0
        return density.DensityTask(
            design=design,
            solver=self.solver.build(solver, exact=True),
            spec=spec,
            trace=self.trace or ("exact" if spec.levels is None else "hutchinson"),
            probes=self.probes or 1,
            hidden_classes=hidden if self.hidden_classes is None else self.hidden_classes,
            kinetic_penalty=self.kinetic_penalty,
            jacobian_penalty=self.jacobian_penalty,
            matching=None if self.objective == "likelihood" else self._matching_of(spec),
            finetuned=self.objective == "matching+likelihood",
            passes_per_epoch=1 if self.passes is None or self._is_coupled(spec) else self.passes,
        )

    def _is_coupled(self, spec: "DensitySpec") -> bool:
        """Whether every occurrence of a row has a partner of its own, and so must be a row of its own."""
        return self.objective != "likelihood" and self._matching_of(spec).coupling != "independent"

    def _matching_of(self, spec: "DensitySpec") -> "density.MatchingDesign":
        # Times near the data are for the likelihood, which a flow from another source does not have. Whitened images
        # have no tiny coefficients that only such times show.
        times = "logit-normal" if spec.rotation else "data"
        return self._matching(spec.levels, coupled=not spec.context and spec.levels is None, times=times)

    def _matching(self, levels: int | None, *, coupled: bool, times: TimesName) -> "density.MatchingDesign":
        if levels is not None and self.coupling == "ot":
            raise ValueError("partners of images are not coupled: leave --coupling out")
        coupling: CouplingName = "ot" if coupled else "independent"
        return density.MatchingDesign(self.path or "linear", self.times or times, self.coupling or coupling)

    def design(
        self, shape: tuple[int, ...], levels: int | None, *, classes: int = 0
    ) -> tuple["models.AbstractFlowDesign", "solve.Solver"]:
        """Choose the flow and the preset's solver for samples of one shape.

        Args:
            shape: Shape of one sample.
            levels: Grey levels of images; None for numbers.
            classes: Number of classes and columns to condition on.

        Returns:
            The flow's design, with the sizes that are set here, and the preset's solver.

        Raises:
            ValueError: If a size has no meaning for such samples.
        """
        preset, solver = preset_design(self, levels)
        given = {
            "width": self.width,
            "characteristic_dim": self.characteristic_dim,
            "blocks": self.blocks,
            "end_time": self.end_time,
            "sharpness": self.sharpness,
            "frequencies": self.frequencies,
            "frequency_scale": self.frequency_scale,
            "classes": classes or None,
        }
        given = {name: value for name, value in given.items() if value is not None}
        foreign = [name for name in given if not hasattr(preset, name)]
        if foreign:
            raise ValueError(f"{', '.join(foreign)}: the flow of samples of shape {shape} has no such setting")
        return replace(preset, **given), solver

    def resolve_paths(self) -> Self:
        known = {*data.DATASETS, *data.TOYS}
        source = None if self.source is None else absolute_path(self.source, known)
        return replace(self, data=absolute_path(self.data, known), source=source)


def _first(split: "DensityBatch", count: int | None) -> "DensityBatch":
    if count is None or count >= len(split.inputs):
        return split
    from numpy import arange

    rows = arange(count)
    return split._replace(**{name: part[rows] for name, part in split._asdict().items() if part is not None})
