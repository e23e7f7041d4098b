"""`python -m c5` is the command."""

from c5.cli import main

if __name__ == "__main__":
    main()
