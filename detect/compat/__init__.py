"""What a few public suites compute, so that their numbers can be had again beside ours."""
