"""The rules of `tfrl.reports.health`, in modules by what they look at."""
