"""Series with dropped observations: the recipe, and tables of a part of the runs."""

from charax.paper.irregular import Irregular, make_config
from charax.train import Sweep, to_json
from charax.train._checkpoints import write_json

RESULT = {
    "accuracy": 0.9,
    "validation_accuracy": 1.0,
    "nfe": 56.0,
    "parameters": 17_000,
    "seconds": 8.0,
    "compile_seconds": 5.0,
}


def test_a_table_of_what_is_finished_has_the_seeds_that_are_there(tmp_path):
    table = Irregular(seeds=3, finished_only=True)
    for percent, seeds in ((0, (1, 3)), (70, (2,))):
        for seed in seeds:
            settings = {**to_json(make_config("JapaneseVowels", "hybrid", percent, seed)), "epochs": 100}
            place = tmp_path / "records" / f"JapaneseVowels-hybrid-{percent}-seed{seed}.json"
            place.parent.mkdir(exist_ok=True)
            write_json(place, {"settings": settings, "result": RESULT | {"accuracy": 0.9 + 0.02 * seed}})
    rows = table.run(tmp_path, Sweep()).answer["rows"]
    assert [(row["dropped_percent"], row["seeds"], round(row["accuracy_mean"], 3)) for row in rows] == [
        (0, 2, 0.94),
        (70, 1, 0.94),
    ]


def test_all_methods_have_the_same_settings():
    first, *others = (make_config("BasicMotions", method, 70, 1) for method in ("cde", "hybrid", "c-node", "gru"))
    assert all({**to_json(one), "method": first.method} == to_json(first) for one in others)
    assert first.loop.weights == "last"
