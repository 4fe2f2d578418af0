"""The study of the objective; it writes docs/development/studies/objective.md."""
