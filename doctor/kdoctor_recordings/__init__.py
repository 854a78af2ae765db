"""Output of other tools and kernel logs, as snapshots."""
