"""Members: which processes there are, and who owns which partition and source."""
