"""The steps of an experiment, their inputs and their order."""
