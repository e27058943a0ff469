"""Examples: from the rows of datasets to a pool of members and non-members."""
