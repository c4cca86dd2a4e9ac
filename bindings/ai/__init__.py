"""The AI binding: the client of the inference daemon, and its protocol."""
