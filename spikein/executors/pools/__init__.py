"""Builders of single steps: worker processes of this machine, a Ray cluster, Slurm jobs."""
