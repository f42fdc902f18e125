"""Before collecting: which mechanism, which epsilon, how many users."""
