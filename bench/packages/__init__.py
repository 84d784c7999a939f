"""Other packages, each in its own environment: what to install, and how it is used."""
