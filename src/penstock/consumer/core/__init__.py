"""What a consumer decides. Pure: no clock, no thread, no file, no network."""
