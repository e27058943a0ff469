"""Which steps an experiment takes, out of what each is made, and in which order."""
