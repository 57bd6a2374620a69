"""`charax train density --objective matching` of images: with and without classes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.models.flows import Hutchinson, NormalQuantiles, SingleScaleFlow, StandardizedLogits, WhitenedPixels
from charax.tasks.density import DensityConfig, DensityTask
from charax.train import LoopConfig, load_run

SMALL = "--objective matching --width 4 --characteristic-dim 2 --solver euler --steps 2 --epochs 2 --batch-size 16"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Dark and bright images of 4 x 4 pixels, with their classes."""
    bright = np.arange(120) % 2
    noise = np.random.default_rng(0).integers(0, 60, (120, 4, 4))
    path = tmp_path_factory.mktemp("data") / "pictures.npz"
    np.savez(path, x=(noise + 180 * bright[:, None, None]).astype(np.uint8), y=np.array(["dark", "bright"])[bright])
    return path


@pytest.fixture(scope="module")
def config(pictures) -> DensityConfig:
    return DensityConfig(
        data=str(pictures), objective="matching", width=4, characteristic_dim=2, loop=LoopConfig(batch_size=16)
    )


@pytest.mark.parametrize(("pixels", "tolerance"), [("logit", 0.2), (None, 0.3)])
def test_pixels_of_the_training_images_have_mean_0_and_deviation_1(config, pixels, tolerance):
    data = dataclasses.replace(config, pixels=pixels).load_data()
    flow = config.build_task(data.spec).build(jax.random.key(0))
    assert isinstance(flow, SingleScaleFlow)
    assert isinstance(flow.scaling, StandardizedLogits if pixels else NormalQuantiles)
    x = flow.pixels.dequantise(jnp.asarray(data.splits.train.inputs), key=jax.random.key(0))
    state, _ = flow.scale_pixels(x)
    np.testing.assert_allclose(state.mean(0), 0, atol=tolerance)
    np.testing.assert_allclose(state.std(0), 1, atol=tolerance)
    # Half of the images are dark: nothing between two peaks, or a normal distribution.
    middle = float((jnp.abs(state) < 0.3).mean())
    assert middle < 0.1 if pixels else 0.2 < middle < 0.28


@pytest.fixture(scope="module")
def colourful(tmp_path_factory):
    """Images of 4 x 4 pixels of one colour each, and little noise."""
    generator = np.random.default_rng(0)
    images = generator.integers(20, 230, (60, 1, 1, 3)) + generator.integers(-9, 9, (60, 4, 4, 3))
    path = tmp_path_factory.mktemp("data") / "colourful.npz"
    np.savez(path, x=images.astype(np.uint8))
    return path


def test_colour_images_are_whitened_by_default(config, colourful):
    colour = dataclasses.replace(config, data=str(colourful))
    data = colour.load_data()
    flow = colour.build_task(data.spec).build(jax.random.key(0))
    assert isinstance(flow, SingleScaleFlow)
    assert isinstance(flow.scaling, WhitenedPixels)
    x = flow.pixels.dequantise(jnp.asarray(data.splits.train.inputs), key=jax.random.key(0))
    white, pixels = (np.asarray(each).reshape(len(x), -1, 3) for each in (flow.scaling.forward(x)[0], x))
    neighbours = lambda images: np.corrcoef(images[:, 0, 0], images[:, 1, 0])[0, 1]
    assert abs(neighbours(white)) < 0.4 < 0.9 < neighbours(pixels)
    matching = colour.build_task(data.spec).matching  # pyright: ignore[reportAttributeAccessIssue]
    assert matching.times == "logit-normal"
    other = dataclasses.replace(colour, pixels="quantiles")
    task = other.build_task(other.load_data().spec)
    assert isinstance(task.build(jax.random.key(0)).scaling, NormalQuantiles)  # pyright: ignore[reportAttributeAccessIssue]
    assert task.matching.times == "data"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_run_of_whitened_images_can_be_evaluated_and_sampled_again(colourful, ask, tmp_path):
    place = ["--data", colourful, "--output", tmp_path, "--name", "run"]
    trained = ask("train", "density", *SMALL.split(), *place)
    assert ask("evaluate", tmp_path / "run")["bits_per_dim"] == pytest.approx(trained["bits_per_dim"], rel=1e-6)
    ask("sample", tmp_path / "run", "-n", 20, "--output", tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        samples = file["x"].astype(float)
    # Images of one colour, even after two epochs: neighbours are alike, images are not.
    assert samples.std(axis=(1, 2)).mean() < 0.5 * samples.mean(axis=(1, 2)).std()


@pytest.mark.parametrize("change", [{"objective": "likelihood"}, {"data": "moons"}])
def test_only_pixels_of_matched_images_can_be_scaled(config, change):
    with pytest.raises(ValueError, match="leave --pixels out"):
        dataclasses.replace(config, pixels="logit", **change).load_data()


def test_a_run_with_classes_draws_them_by_name_with_guidance(pictures, ask, tmp_path):
    place = ["--data", pictures, "--output", tmp_path, "--name", "run"]
    flags = f"{SMALL} --epochs 12 --conditional --learning-rate 0.02"
    trained = ask("train", "density", *flags.split(), *place)
    assert trained["objective"] == "matching"
    assert ask("evaluate", tmp_path / "run")["bits_per_dim"] == pytest.approx(trained["bits_per_dim"], rel=1e-6)

    def brightness(name: str, guidance: int) -> float:
        flags = ["-n", 20, "--class", name, "--guidance", guidance, "--output", tmp_path / "new.npz"]
        ask("sample", tmp_path / "run", *flags)
        with np.load(tmp_path / "new.npz") as file:
            assert set(file["y"]) == {name}
            assert file["x"].shape == (20, 4, 4, 1)
            return file["x"].mean()

    # The data have 30 and 210: after a few epochs the classes are apart, and guidance takes them further.
    asked = (("dark", 3), ("dark", 0), ("bright", 0), ("bright", 3))
    darker, dark, bright, brighter = (brightness(*each) for each in asked)
    assert darker + 15 < dark
    assert dark + 20 < bright
    assert bright + 15 < brighter
    task = load_run(tmp_path / "run").trained.task
    assert isinstance(task, DensityTask)
    assert (task.hidden_classes, len(task.spec.probabilities)) == (0.1, 16)


def test_guidance_needs_classes_that_were_hidden(config):
    task = config.build_task(config.load_data().spec)
    with pytest.raises(ValueError, match="--hidden-classes"):
        task.sample(task.build(jax.random.key(0)), 2, guidance=1.0)


def test_hidden_classes_do_not_reach_the_flow(config):
    """The gradient of the loss with respect to the weights of the classes is that of the samples that show theirs."""
    labelled = dataclasses.replace(config, conditional=True, method="node")
    data = labelled.load_data()
    batch = jax.tree.map(lambda part: part[:16], data.splits.train)

    def gradient(fraction: float) -> float:
        task = dataclasses.replace(labelled, hidden_classes=fraction).build_task(data.spec)
        model = task.build(jax.random.key(0))
        found = jax.jit(jax.grad(lambda model: task.loss(model, batch, jax.random.key(0))[0]))(model)
        layers = found.flow.field.network.layers[0].embedding.layers  # features of the time and two classes, then dense
        return float(jnp.abs(layers[1].weight[1:3]).max())

    assert gradient(0.0) > 1e-6
    assert gradient(0.9999) == 0


def test_settings_reach_the_task_and_the_data(config):
    spec = config.load_data().spec
    task = dataclasses.replace(config, probes=3).build_task(spec)
    assert task._training_trace == Hutchinson(3)
    few = dataclasses.replace(config, evaluated=5).load_data().splits
    assert (len(few.validation.inputs), len(few.test.inputs)) == (5, 5)
    assert len(few.train.inputs) > 50
