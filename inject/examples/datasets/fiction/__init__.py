"""Invented people, places, works and gatherings: what `fictional` rows are made of.

`names` (numbers of one row, and invented values), `subject` (people, towns, works and
gatherings; a `.txt` of sentences each), `prose` (facts into prose).
"""
