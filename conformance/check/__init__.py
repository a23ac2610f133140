"""What ``fencepost check`` shows: one obligation after another, each with the verdict that it must have."""
