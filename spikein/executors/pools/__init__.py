"""Where single steps are built: worker processes of this machine, a Ray cluster, Slurm jobs."""
