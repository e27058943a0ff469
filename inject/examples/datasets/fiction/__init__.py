"""Invented people, places, works and gatherings: what `fictional` rows are made of.

`draws` (numbers of one row), `names` (invented values), `subject` (people, towns, works and
gatherings; a `.txt` of sentences each), `prose` (facts into prose).
"""
