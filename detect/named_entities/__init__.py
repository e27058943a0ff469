"""Named entities of texts: found by a spaCy pipeline that the user names, and stored as spans."""
