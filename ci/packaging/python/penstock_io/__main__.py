"""`penstock` and `python -m penstock_io`: becomes the program of this package."""

import os
import sys

import penstock_io


def main():
    program = penstock_io.program()
    os.execv(program, ["penstock", *sys.argv[1:]])


if __name__ == "__main__":
    main()
