"""The parts of scripts/slurm-cluster. Standard library only: it runs before anything is installed."""
