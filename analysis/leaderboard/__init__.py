"""The leaderboard of a benchmark: submissions, their checks and ranks, and the page."""
