"""Make `fakes` importable; it is shared with tests/execute."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
