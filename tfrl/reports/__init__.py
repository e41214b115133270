"""Reports of runs, and findings about what keeps them from learning."""
