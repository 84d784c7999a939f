"""Tasks in which a model works while its history is compacted: tau2 in Inspect, and CompactBench."""
