"""Invented people, places, works and gatherings: what `fictional` rows are made of.

`draws` (numbers of one row), `names` (invented values), `subject` (what a kind of subject and
a fact are), one file of sentences a kind of subject (`people`, `towns`, `works`, `gatherings`),
`telling` (facts into prose), `forms` (prose into biography, passage, choice and question).
"""
