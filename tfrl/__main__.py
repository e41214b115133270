"""`python -m tfrl` is the command `tfrl`."""

from tfrl.command import main

if __name__ == "__main__":
    main.main()
