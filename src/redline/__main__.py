"""`python -m redline`."""

from redline.cli.app import main

if __name__ == "__main__":
    main()
