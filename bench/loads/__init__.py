"""What `bench/load.py` runs, each scenario in processes of its own."""
