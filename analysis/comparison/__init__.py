"""Two runs side by side: their metrics, and paired differences on the rows that both scored."""
