"""What a run will take, told before it starts: copies, tokens, memory, disk and time."""
