"""What clients are known by and what they say under other people's roles: a file a client, read by `voices`."""
