"""lib_typed_mistakes.py: code that test_python_types.py gives to mypy and never runs. A line with a mistake has the
report of mypy in a comment; all other lines are right."""
import decimal
import fractions
from typing import List, Optional

import reach
import reach.answers


def right(source: reach.Reach, uuid: str) -> None:
    plan: reach.answers.Plan = source.plan(0, bytes=[1 << 30, "2GiB"], element=32, touches=[1, 0.5], access="read",
                                           contiguous=fractions.Fraction(1, 2), scan_gps=decimal.Decimal("640.5"))
    best: str = plan.recommended
    speeds: List[Optional[float]] = [option.gbps for option in plan.options]
    if plan.placement is not None:
        window_of_sm: List[int] = plan.placement.table()
        first: int = plan.placement.windows[0].first_byte
        print(window_of_sm, first)
    print(best, speeds, plan["reason"], plan.get("allocations"), source.get("/v1/gpus")["gpus"])
    plan.check_gpu(uuid)
    source.revalidate(plan)
    print(source.fingerprint(uuid).windows.reach_bytes, source.memory(0, 1 << 30, location="host").choices[0].gbps)
    print([gpu.uuid for gpu in source.gpus()], source.fit(0, "4MiB", reuse="own").stays)


def wrong(source: reach.Reach) -> None:
    plan = source.plan(0, bytes=1 << 30)
    print(plan.recomended)  # mypy: "Plan" has no attribute "recomended" [attr-defined]
    print(plan.options[0].gpbs)  # mypy: "Option" has no attribute "gpbs" [attr-defined]
    print(plan.placement.windows)  # mypy: Item "None" of "Optional[PlanPlacement]" has no attribute "windows" [union-attr]
    print(source.fingerprint(0).window)  # mypy: "Fingerprint" has no attribute "window" [attr-defined]
    print(source.gpus()[0].id)  # mypy: "Gpu" has no attribute "id" [attr-defined]
    print(source.get("/v1/gpus").gpus)  # mypy: "Answer" has no attribute "gpus" [attr-defined]
    source.plan(0, bytes=1 << 30, elment=32)  # mypy: Unexpected keyword argument "elment" for "plan" of "Reach" [call-arg]
    source.plan(0, bytes=1 << 30, scan_gps="fast")  # mypy: Argument "scan_gps" to "plan" of "Reach" has incompatible type "str" [arg-type]
    source.plan(0, 1 << 30, "read")  # mypy: Too many positional arguments for "plan" of "Reach" [misc]
    source.scope(0, bytes=1, window=2)  # mypy: Unexpected keyword argument "window" for "scope" of "Reach" [call-arg]
    source.scopes(0, bytes=1, rows=2)  # mypy: Unexpected keyword argument "rows" for "scopes" of "Reach" [call-arg]
    source.placement(0, bytes=1, window=2)  # mypy: Unexpected keyword argument "window" for "placement" of "Reach" [call-arg]
    source.split(0, bytes=[1], weights=[1])  # mypy: Unexpected keyword argument "weights" for "split" of "Reach" [call-arg]
    source.memory(0, bytes=1, where="host")  # mypy: Unexpected keyword argument "where" for "memory" of "Reach" [call-arg]
    source.fit(0, bytes=1, again="own")  # mypy: Unexpected keyword argument "again" for "fit" of "Reach" [call-arg]
    source.explain(0, bytes=1, gbps=1, size=4)  # mypy: Unexpected keyword argument "size" for "explain" of "Reach" [call-arg]
    source.revalidate({})  # mypy: Argument 1 to "revalidate" of "Reach" has incompatible type "Dict[<nothing>, <nothing>]" [arg-type]
