"""Facts told early in a session, and what a client's next request has of them when somebody asks in other words."""
