"""Run `belem` as `python -m belem`."""

from belem.runtime.cli import main

if __name__ == "__main__":
    main()
