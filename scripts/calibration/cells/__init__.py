"""Coverage of the intervals that users get: one simulated cell after another.

Each other module of this package has a list `CELLS`. A cell draws studies whose truth is known, and
calls one public function for each: the generators share no code with the intervals.
"""
