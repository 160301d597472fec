"""Quantization of saved programs: calibration thresholds, rewriting, reading and writing."""
