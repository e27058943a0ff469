"""Numbers with the luck of the pool taken out, by the base model's scores on the same rows."""
