"""Invented people, places, works and gatherings: what `fictional` rows are made of.

`draws` (numbers of one row), `names` (invented values), `subject` (what a kind of subject and a
fact are), `kinds` (people, towns, works, gatherings; a `.txt` of sentences each), `prose` (facts
into prose), `forms` (prose into biography, passage, choice and question).
"""
