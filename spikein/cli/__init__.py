"""The command line: one file per command, heavy imports only inside commands."""
