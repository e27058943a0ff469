"""Coverage of the report's intervals in simulated studies whose truth is known."""
