"""The public data sets that the presets read, fetched from the hub into the layout they expect.

`catalogue` says what is where and under which licence, `conversions` what becomes of a row,
how a protected data set is closed, and `fetch` does it all into one folder.
"""
