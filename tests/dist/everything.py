"""Data parallelism against one process at 1, 2, 4 and 8 ranks (_training.py, 50 steps of every case), and 10,000 random
collectives at 2, 4 and 8 (_fuzz.py)."""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def launch(ranks, script, *arguments):
    print(f"-- {script}, {ranks} ranks", flush=True)
    with tempfile.TemporaryDirectory(prefix="proa_dist_") as logs:
        return subprocess.run([sys.executable, "-m", "proa.distributed.launch", "--nproc_per_node", str(ranks), "--log_dir", logs,
                               str(HERE / script), *arguments], check=False).returncode != 0


bad = sum(launch(ranks, "_training.py") for ranks in (1, 2, 4, 8)) + sum(launch(ranks, "_fuzz.py") for ranks in (2, 4, 8))
sys.exit(bad > 0)
