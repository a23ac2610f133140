"""Mining: which traces of a corpus break which promise, how many bugs that is, and the shortest story of each."""
