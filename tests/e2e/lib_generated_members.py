"""Generates text from the rows of daemon/fingerprint/members.c: the JSON schema, the components of openapi.yaml and
the tables of docs/fingerprint.md."""
import json
import re

# The schema names of the enumerations that a fingerprint shares with the identity of a GPU and with stored values.
DEPTHS = ["quick", "full", "memory", "matrix"]
ID = {"type": "string", "pattern": "^fp[0-9a-f]{16}$"}
HEAD = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "fingerprint.schema.json",
    "title": "Fingerprint",
    "description": "What analysis concluded about one GPU. Units are part of every name: _bytes, _cycles (of the SM clock), "
                   "_gbps (10^9 bytes per second). An absent number is null and has its reason beside it, in the field of "
                   "the same name with the suffix _reason. Later releases may add fields; readers ignore fields they do not "
                   "know. Generated from daemon/fingerprint/members.c by make generated.",
    "type": "object",
}
GPU = {
    "uuid": {"type": "string", "description": "GPU- or MIG- and 36 characters, or SIM-... for a simulated GPU."},
    "name": {"type": "string", "description": "The name that the driver reports."},
    "serial": {"type": ["string", "null"], "description": "The serial number, or null if the driver reports none."},
    "pci_bus_id": {"type": ["string", "null"]},
    "compute_capability": {"type": "string", "pattern": "^[0-9]{1,3}\\.[0-9]{1,3}$"},
    "sm_count": {"type": "integer", "minimum": 0, "maximum": 512},
    "memory_bytes": {"type": "integer", "minimum": 0},
    "l2_cache_bytes": {"type": ["integer", "null"], "minimum": 0},
    "l2_cache_bytes_reason": {"$ref": "#/$defs/reason"},
    "driver_version": {"type": "string"},
    "cuda_version": {"type": ["string", "null"], "description": "The CUDA version of the driver, or null for a simulated GPU."},
    "mig": {"type": "boolean", "description": "True for a MIG instance, and if MIG mode is on."},
    "mlopart": {"type": "boolean", "description": "True for an MLOPart device (MPS), else absent."},
    "origin": {"$ref": "#/$defs/origin"},
}
SOURCE = {"id": ID, "depth": {"enum": DEPTHS}, "taken_at": {"$ref": "#/$defs/time"}}
KEPT = {
    "measurement_id": {**ID, "description": "The id of the newest measurement alone. The member is present only if this "
                                            "document is another one, because parts are kept or another release stored it."},
    "measurement_depth": {"enum": DEPTHS, "description": "The depth of the newest measurement, present with measurement_id. The "
                                                         "member depth is the greatest of this depth and of the kept parts."},
    "kept": {
        "type": "array", "minItems": 1,
        "description": "The parts of earlier measurements that the newest measurement did not determine. All other parts "
                       "are from the newest measurement.",
        "items": {"type": "object", "properties": {
            **SOURCE, "parts": {"type": "array", "minItems": 1, "items": {"type": "string"},
                                "description": "The places of parts in this document: tlb.levels[K].size, throughput.curve."}},
            "required": ["id", "depth", "taken_at", "parts"]}},
    "dropped": {
        "type": "object",
        "description": "An earlier measurement that this measurement contradicts. No part of it is kept.",
        "properties": {**SOURCE, "reason": {"type": "string"}},
        "required": ["id", "depth", "taken_at", "reason"]},
}
LOST = {"type": "object", "properties": {"group": {"type": "integer", "minimum": 0},
                                         "sms": {"type": "integer", "minimum": 1,
                                                 "description": "The number of SMs that the group lacks."}},
        "required": ["group", "sms"]}


def fixed_defs(table):
    method = {"anyOf": [{"$ref": "#/$defs/method"}, {"type": "null"}]}
    return {
        "gpu": {"type": "object", "properties": GPU, "required": [name for name in GPU if name != "mlopart" and not name.endswith("_reason")],
                "allOf": [reason_rule("l2_cache_bytes", True)]},
        "origin": {"enum": ["measured", "simulated", "imported"],
                   "description": "The source of the numbers: measured on hardware, simulated by a model, or imported from raw "
                                  "numbers of another program."},
        "evidence": {
            "type": "object",
            "description": "The evidence of a number, present only if the number is present. docs/methods.md defines repeats "
                           "and margin for each method.",
            "properties": {
                "method": {"$ref": "#/$defs/method"},
                "repeats": {"type": "integer", "minimum": 1, "description": "The smallest number of votes, laps or repeats."},
                "margin": {"type": "number", "minimum": 0, "maximum": 1,
                           "description": "The margin is 0 at the threshold and 1 at the largest distance from it."}},
            "required": ["method", "repeats", "margin"]},
        "evidence_column": {
            "type": "object",
            "description": "The evidence of one number of each element of the list beside it. Each part is one value if all "
                           "elements have it in common, else a list with one entry per element, in order. An element without "
                           "evidence has null in margin, so a single margin applies to every element; if method or repeats "
                           "differ among those with evidence, the others have null there too.",
            "properties": {
                "method": {"anyOf": [{"$ref": "#/$defs/method"}, {"type": "array", "items": method}]},
                "repeats": {"type": ["integer", "array"], "minimum": 1,
                            "items": {"type": ["integer", "null"], "minimum": 1}},
                "margin": {"type": ["number", "array"], "minimum": 0, "maximum": 1, "contains": {"type": "number"},
                           "items": {"type": ["number", "null"], "minimum": 0, "maximum": 1}}},
            "required": ["method", "repeats", "margin"]},
        "method": {"enum": table["methods"]},
        "sm_list": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": table["max_sms"] - 1},
                    "minItems": 1, "uniqueItems": True, "description": "SM ids in ascending order."},
        "time": {"type": "string", "format": "date-time",
                 "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"},
        "reason": {"description": "The reason of a null number. A plain slug means unknown. With the prefix \"not-observable: \", "
                                  "the number was probed, and the hardware shows no signal.",
                   "type": "string", "pattern": f"^(not-observable: )?({'|'.join(table['reasons'])})$"},
    }


def reason_rule(name, required):
    condition = {"properties": {name: {"type": "null"}}}
    return {"if": condition if required else {**condition, "required": [name]},
            "then": {"required": [name + "_reason"]},
            "else": {"properties": {name + "_reason": False}}}


def is_maybe(member):
    return member["type"].startswith("maybe-")


def is_always_there(member):
    """Returns whether every document has the member. An optional text without a value is null; an unknown array of SMs
    is missing."""
    return member["type"] == "text" or not (member["optional"] or member["type"] in ("sm-lists", "sm-numbers"))


def number(kind, member):
    """Returns the range of a number as members of a schema."""
    whole = kind == "integer"
    least = int(member["min"]) if whole else member["min"]
    found = {"minimum": max(least, 1) if whole and member["positive"] else least}
    if member["positive"] and not whole:
        found = {"exclusiveMinimum": 0}
    if member["max"] > 0:
        found["maximum"] = int(member["max"]) if member["max"] == int(member["max"]) else member["max"]
    return found


def list_range(member):
    least = member["min_count"] or (1 if member["optional"] else 0)
    return {**({"minItems": least} if least else {}), "maxItems": member["max_count"]}


class Forms:
    """Returns the schema of a kind of member; `ref` makes a reference to a named one."""

    def __init__(self, table):
        self.groups, self.sms = table["max_groups"], table["max_sms"]

    def array(self, member, sm_list):
        """Returns the schema of an array of SMs or of groups."""
        group = {"type": "integer", "minimum": 0, "maximum": self.groups - 1}
        return {
            "sm-lists": {"type": "array", "maxItems": self.groups, "items": sm_list},
            "two-groups": {"type": "array", "minItems": 2, "maxItems": 2, "items": group},
            "candidates": {"type": "array", "maxItems": 32, "items": sm_list},
            "lost": {"type": "array", "maxItems": self.groups, "items": LOST},
            "index": group,
            "sms": sm_list,
            "sm-numbers": {"type": "array", "maxItems": self.sms, "items": {"type": ["number", "null"], "minimum": 0}},
            "notes": {"type": "array", "maxItems": member["max_count"], "items": {"type": "string"}},
        }[member["type"]]


# ---- schema/json/fingerprint.schema.json ----


def schema_of_member(member, forms):
    kind = member["type"].replace("maybe-", "")
    if kind in ("integer", "number"):
        return {"type": [kind, "null"] if is_maybe(member) else kind, **number(kind, member)}
    if kind == "text":
        return {"type": ["string", "null"] if member["optional"] else "string"}
    if kind == "time":
        return {"$ref": "#/$defs/time"}
    if kind == "word":
        return {"enum": member["words"]}
    if kind == "object":
        return {"$ref": "#/$defs/" + member["object"]}
    if kind == "list":
        return {"type": "array", **list_range(member), "items": {"$ref": "#/$defs/" + member["object"]}}
    return forms.array(member, {"$ref": "#/$defs/sm_list"})


def schema_members(table, name, forms):
    """Returns the properties of an object, its required members, and the rules of its reasons."""
    properties, required, rules = {}, [], []
    for member in table["objects"][name]["members"]:
        properties[member["name"]] = {**schema_of_member(member, forms), "description": member["doc"]}
        if is_always_there(member):
            required.append(member["name"])
        if is_maybe(member):
            properties[member["name"] + "_reason"] = {"$ref": "#/$defs/reason"}
            rules.append(reason_rule(member["name"], is_always_there(member)))
        if member["columns"]:
            numbers = table["objects"][member["object"]]["evidence"]
            properties[member["columns"]] = {
                "type": "object", "description": f"Evidence of the numbers of the same name in {member['name']}.",
                "properties": {number: {"$ref": "#/$defs/evidence_column"} for number in numbers}}
    return properties, required, rules


def schema_object(table, name, forms):
    properties, required, rules = schema_members(table, name, forms)
    evidence = table["objects"][name]["evidence"]
    if evidence:
        properties["evidence"] = {"type": "object", "description": "Evidence of the numbers of the same name.",
                                  "properties": {number: {"$ref": "#/$defs/evidence"} for number in evidence}}
    return {"type": "object", "description": table["objects"][name]["doc"], "properties": properties, "required": required,
            **({"allOf": rules} if rules else {})}


def schema(table):
    forms = Forms(table)
    properties, required, _ = schema_members(table, "Fingerprint", forms)
    first = {"id": {**ID, "description": "\"fp\" and the 64-bit FNV-1a of everything else as compact JSON with sorted keys"},
             "gpu": {"$ref": "#/$defs/gpu"}, "origin": {"$ref": "#/$defs/origin"}}
    document = {**HEAD, "properties": {**first, **properties, **KEPT}, "required": [*first, *required],
                "$defs": {**{name: schema_object(table, name, forms) for name in table["objects"] if name != "Fingerprint"},
                          **fixed_defs(table)}}
    return lines_of_json(document)


def lines_of_json(value, indent=0, before=""):
    """Returns JSON that is indented by two. An object that fits into a line is on one line."""
    short = json.dumps(value, ensure_ascii=False)
    if len(before) + indent + len(short) <= 100 or not isinstance(value, (dict, list)) or not value:
        return [" " * indent + before + short]
    pairs = [(json.dumps(key) + ": ", inner) for key, inner in value.items()] if isinstance(value, dict) else \
        [("", inner) for inner in value]
    lines = [" " * indent + before + ("{" if isinstance(value, dict) else "[")]
    for i, (key, inner) in enumerate(pairs):
        lines += lines_of_json(inner, indent + 2, key)
        lines[-1] += "," if i + 1 < len(pairs) else ""
    return lines + [" " * indent + ("}" if isinstance(value, dict) else "]")]


# ---- api/openapi.yaml ----


def ref(name):
    return {"$ref": "#/components/schemas/" + name}


def component_of_member(member, forms):
    kind = member["type"]
    if kind in ("maybe-integer", "maybe-number"):
        return ref("MaybeCount" if kind == "maybe-integer" else "MaybeNumber")
    if kind == "integer":
        return {"type": "integer", **number(kind, member)}
    if kind == "time":
        return {"type": "string", "format": "date-time"}
    if kind == "object":
        return ref(member["object"])
    if kind == "list":
        return {"type": "array", "maxItems": member["max_count"], "items": ref(member["object"])}
    if kind == "lost":
        return {"type": "array", "items": ref("DisabledByGroup")}
    if kind in ("number", "text", "word"):
        return schema_of_member(member, forms)
    return forms.array(member, {"type": "array", "items": {"type": "integer", "minimum": 0}})


def flow(value):
    """Returns a value as one line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(inner) for inner in value) + "]"
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w-]*", value) and value not in ("yes", "no", "null", "on", "off"):
        return value
    return json.dumps(value)


def component_members(table, name, forms):
    lines = []
    for member in table["objects"][name]["members"]:
        lines.append(f"{member['name']}: " + flow({"description": member["doc"], **component_of_member(member, forms)}))
        if is_maybe(member):
            lines.append(f"{member['name']}_reason: " + flow(ref("Reason")))
        if member["columns"]:
            lines.append(f"{member['columns']}: " + flow(ref("EvidenceColumns")))
    beside_lists = {member["object"] for one in table["objects"].values() for member in one["members"] if member["columns"]}
    if table["objects"][name]["evidence"] and name not in beside_lists:
        lines.append("evidence: " + flow(ref("Evidence")))
    return lines


def components(table, _):
    """Returns all objects except the whole fingerprint, because it has members that are not in its table."""
    forms, lines = Forms(table), []
    for component, one in table["objects"].items():
        if component == "Fingerprint":
            continue
        always = [member for member in one["members"] if is_always_there(member) and not is_maybe(member)]
        required = [name for member in always for name in (member["name"], member["columns"]) if name]
        lines += [f"    {component}:", f"      description: {json.dumps(one['doc'])}", "      type: object"]
        lines += [f"      required: {flow(required)}"] if required else []
        lines += ["      properties:"] + [" " * 8 + line for line in component_members(table, component, forms)]
    return lines + ["    DisabledByGroup:", "      type: object", f"      required: {flow(LOST['required'])}",
                    "      properties:"] + [f"        {name}: {flow(one)}" for name, one in LOST["properties"].items()]


def fingerprint_members(table, _):
    return [" " * 8 + line for line in component_members(table, "Fingerprint", Forms(table))]


# ---- docs/fingerprint.md ----


def range_of(member):
    if member["words"]:
        return ", ".join(member["words"])
    if member["type"].replace("maybe-", "") not in ("integer", "number"):
        return ""
    least = "above 0" if member["positive"] else f"{int(member['min'])} or more" if member["min"] else ""
    if member["max"] > 0:
        return f"{int(member['min'])} to {int(member['max'])}"
    return least


def flags_of(member):
    words = [word for word, holds in (("key", member["key"]), ("optional", member["optional"]),
                                      ("planner", member["for_planner"])) if holds]
    return ", ".join(words + ([member["class"]] if member["class"] else []))


def tables(table, _):
    lines = []
    for name, one in table["objects"].items():
        lines += ["", f"### {name}", "", one["doc"], "", "| member | unit | range | use | meaning |", "|---|---|---|---|---|"]
        for member in one["members"]:
            kind = member["object"]
            unit = "" if kind else member["unit"]
            of = f"[{kind}](#{kind.lower()})" + (", a list. " if member["type"] == "list" else ". ") if kind else ""
            purpose = f" {member['purpose']}" if member["purpose"] else ""
            lines.append(f"| `{member['name']}` | {unit} | {range_of(member)} | {flags_of(member)} | "
                         f"{of}{member['doc']}{purpose} |")
    return lines + [""]


PARTS = {"api/openapi.yaml": {"fingerprint": fingerprint_members, "components": components},
         "docs/fingerprint.md": {"members": tables}}
FILES = {"schema/json/fingerprint.schema.json": schema}
