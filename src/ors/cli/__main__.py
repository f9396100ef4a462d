"""`python -m ors.cli`: the command where its script is not on the path."""

from ors.cli import main

if __name__ == "__main__":
    main()
