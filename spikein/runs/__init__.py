"""Run folders: what a run leaves for its reader, and what can be asked of it afterwards."""
