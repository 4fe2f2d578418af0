"""Programs for the documents: generate what is generated, check links and commands, run examples.

    make docs                    # python -m documents: writes every generated file
    make stories                 # python -m documents.stories: writes the traces of the stories

Tests compare and run; they write nothing. Nothing here is part of the product.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
