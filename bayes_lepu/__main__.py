"""``python -m bayes_lepu``."""

from bayes_lepu.cli import main

raise SystemExit(main())
