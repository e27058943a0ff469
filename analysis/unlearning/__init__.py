"""The effects of unlearning: measures of forgetting and utility with intervals; a verdict."""
