"""Shared parts of the two sides of the training comparison; needs neither Paddle nor Proa."""
import os
import pathlib

STEPS = 20
MODELS = ["mlp", "cnn", "transformer"]
RATES = {"sgd": 0.1, "momentum": 0.05, "adam": 0.01, "adamw": 0.01, "adagrad": 0.05, "rmsprop": 0.01,
         "adadelta": 1.0, "adamax": 0.01, "lamb": 0.01}


def build_folder():
    return pathlib.Path(os.environ.get("PROA_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
