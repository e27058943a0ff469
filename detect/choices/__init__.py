"""Multiple choice: which of four passages is the verbatim one, asked in all 24 orders."""
