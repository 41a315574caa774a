"""Pages about shapes."""
