"""Runs with PyTorch: reads a question a line, answers with a line. Never imported by the package or its tests."""

import json
import os
import sys
import time

import numpy as np
import torch

from benchmarks.peers.flow_matching import MatchingCase
from benchmarks.peers.image_flow import ImageFlowCase
from benchmarks.peers.models import CASES
from benchmarks.peers.series_training import SeriesTrainingCase


def main() -> None:
    """Answer until there are no more questions."""
    torch.set_num_threads(len(os.sched_getaffinity(0)))  # two threads on one core would wait for each other
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    others = {"matching": MatchingCase, "image flow": ImageFlowCase, "series training": SeriesTrainingCase}
    cases, case = CASES | others, None
    for line in sys.stdin:
        question = json.loads(line)
        answer = {}
        if question["do"] == "prepare":
            with np.load(question["arrays"]) as arrays:
                case = cases[question["case"]](dict(arrays), **question["sizes"])
        elif question["do"] == "run":
            assert case is not None
            start = time.perf_counter()
            for _ in range(question["inner"]):
                case.run(question["how"])
            answer = {"seconds": (time.perf_counter() - start) / question["inner"], "nfe": case.nfe}
        else:
            assert case is not None
            np.savez(question["path"], **case.outputs(question["how"]))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
