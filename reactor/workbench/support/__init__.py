"""`reactor support-bundle`: what a person needs to help from afar, in one file, without secrets."""
