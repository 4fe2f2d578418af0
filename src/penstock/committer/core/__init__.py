"""Who commits for whom, and when. Pure."""
