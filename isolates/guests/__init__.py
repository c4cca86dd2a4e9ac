"""The guests: one folder for each engine, with its build, its boot code and how to assemble it."""
