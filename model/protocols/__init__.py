"""The protocols that come with Fencepost: one folder each, registered by an entry point as anybody's are."""
