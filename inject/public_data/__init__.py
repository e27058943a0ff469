"""The public datasets that the presets read, fetched from the hub into the layout they expect.

`catalogue` lists sources and licences, `conversions` has the conversion of a row,
how a protected dataset is closed, and `fetch` does it all into one folder.
"""
