"""Judge of a run whose truth is known, for chaos and simulated fleets: a model of a perfect reactor."""
