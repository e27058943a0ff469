"""Two runs beside each other: what differs between them, and the page that says so."""
