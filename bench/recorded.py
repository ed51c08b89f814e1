"""Where the recorded model outputs lie: beside the checkout, not in it."""

from pathlib import Path

RECORDED = Path(__file__).parents[2] / "shared" / "recorded"
