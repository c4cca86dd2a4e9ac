"""Capabilities injected into env; one folder each."""
