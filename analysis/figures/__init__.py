"""Figures of a report: SVG, PNG, the CSV behind each, and a caption that names n and seeds."""
