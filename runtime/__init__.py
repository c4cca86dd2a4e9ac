"""Everything that has a main: server, control plane, dev server, inference daemon, command line."""
