"""What unlearning did: measures of forgetting and of utility, each with an interval; a verdict."""
