"""The cases of CompactBench as JSON, by its own code and seeds: python compactbench_cases.py TEMPLATES COUNT."""

import json
import sys
from pathlib import Path

from compactbench.dsl import DifficultyLevel, load_suite
from compactbench.engine import derive_case_seed, generate_case

SUITES = "starter", "elite_practice"


def main(templates: Path, count: int) -> None:
    """So many hard cases of each template."""
    cases = []
    for suite in SUITES:
        for template in load_suite(templates / suite):
            for slot in range(count):
                seed = derive_case_seed(f"{suite}@{template.version}", "default", slot)
                case = generate_case(template, seed, DifficultyLevel("hard"))
                cases.append(
                    {
                        "messages": [{"role": t.role.value, "content": t.content} for t in case.transcript.turns],
                        "items": [
                            [item.item_type.value, item.expected["value"]]
                            for item in case.evaluation_items
                            if item.expected["check"] == "contains_normalized"
                        ],
                    }
                )
    print(json.dumps(cases))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
