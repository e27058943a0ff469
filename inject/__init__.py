"""The ground truth: who is a member, how many copies, where, and when the model saw each."""
