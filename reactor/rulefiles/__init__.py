"""Rule files on disk: found, read, written."""
