"""What `import spikein` offers, and what the command line calls: a module for each question.

Both go the same way: a command reads its options and calls the function of the same name here.
"""
