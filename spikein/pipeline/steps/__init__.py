"""The concrete steps of an experiment: each module makes `Step`s for one stage."""
