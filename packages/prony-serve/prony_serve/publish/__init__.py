"""A result as a folder to publish."""
