"""`spikein detect`: a file of rows scored by a model, with no experiment around it."""
