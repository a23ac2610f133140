"""What nodes and clients say to each other: messages and error codes."""
