"""Programs as descriptions that are quantized: thresholds from samples, edits, files."""
