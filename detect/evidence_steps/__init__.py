"""How each kind of evidence is made: the functions of the steps, one file a kind."""
