"""What holds systems against the protocols that come with Fencepost: one folder each."""
