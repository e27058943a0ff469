"""The tables of the page: their form, and what stands in them."""
