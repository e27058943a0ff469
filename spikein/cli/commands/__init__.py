"""The commands of `spikein`: one file each."""
