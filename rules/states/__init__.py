"""What a group remembers besides its members, one file per rule kind."""
