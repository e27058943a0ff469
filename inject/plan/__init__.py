"""The plan: how many copies each member has, and where each of them goes."""
