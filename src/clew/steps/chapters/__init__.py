"""Chapters by models: who is asked (`author`, `by_model`), when (`asking`), and how code checks them (`vouch`)."""
