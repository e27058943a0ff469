"""The functions of `import spikein` and of the command line: one module per question.

Both share these functions: a command reads its options and calls the function of its name here.
"""
