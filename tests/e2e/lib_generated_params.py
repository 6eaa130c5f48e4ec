"""Generates text from the parameters of requests (daemon/planner/params.c): the parts of lib_generated.py."""
import re
import textwrap

# The structs of reach.h that have the parameters of a function.
STRUCTS = {"scope": "reach_scope_request", "placement": "reach_placement_request", "plan": "reach_job",
           "explain": "reach_explain_request"}
LEAST_REAL = "0.000001"


def functions(params):
    """Returns the functions of the planner that take parameters."""
    return list(dict.fromkeys(function for param in params for function in param["uses"]))


def of(params, function):
    """Returns (parameter, its use by the function) for each parameter of the function."""
    return [(p, p["uses"][function]) for p in params if function in p["uses"]]


def is_list(use):
    return use["form"] != "one"


def additions(param, use):
    """Returns the sentence that follows from the form of a parameter."""
    text = ""
    if is_list(use) and param["kind"] in ("real", "real-or-0"):
        text += f" The range is {LEAST_REAL} to {param['most']}."
    if use["form"] == "each":
        text += " One value applies to all allocations; a list has one value for each allocation, separated by commas."
    if use["form"] == "each-always":
        text += " The list has one value for each job, separated by commas."
    return text


def about(param, use):
    return (use["about"] or param["about"]) + additions(param, use)


def wrapped(text, width, indent):
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


# ---- api/openapi.yaml ----------------------------------------------------------------------------

def schema(param, use):
    kind, default = param["kind"], param["default"]
    more = "" if default is None else f", default: {default}"
    if kind == "size":
        return '{$ref: "#/components/schemas/Sizes"}' if is_list(use) else '{$ref: "#/components/schemas/Size"}'
    if kind == "maybe-size":
        return '{anyOf: [{const: "0"}, {$ref: "#/components/schemas/Size"}]}'
    if is_list(use):
        return '{$ref: "#/components/schemas/Numbers"%s}' % ("" if default is None else f', default: "{default}"')
    return {"count": f"{{type: integer, minimum: 1, maximum: {param['most']}{more}}}",
            "flag": f"{{type: boolean{more}}}",
            "real": f"{{type: number, minimum: {LEAST_REAL}, maximum: {param['most']}{more}}}",
            "share": f"{{type: number, minimum: 0, maximum: 1{more}}}",
            "word": f"{{type: string, enum: [{', '.join(param['words'])}]{more}}}"}[kind]


def openapi(function):
    def lines(params, _):
        out = []
        for param, use in of(params, function):
            out += [f"        - name: {param['name']}", "          in: query"]
            if use["needed"] and not use["unless_alone"]:
                out.append("          required: true")
            out += ["          description: |", *wrapped(about(param, use), 118, " " * 12),
                    f"          schema: {schema(param, use)}"]
        return out
    return lines


# ---- clients/python/reach/__init__.py ------------------------------------------------------------

def annotation(function, param, use):
    kind = param["kind"]
    if use["form"] == "items" and function == "split":
        return "Union[str, Sequence[Size]]"
    if kind == "size":
        return "Sizes" if is_list(use) else "Size"
    return {"maybe-size": "Size", "count": "SupportsIndex", "flag": "bool", "word": "str"}.get(
        kind, "Numbers" if is_list(use) else "Number")


def filled(head, items, tail):
    """Joins `head` and the items with commas, in lines that begin below the first item."""
    out, line = [], head
    for i, item in enumerate(items):
        text = item + (tail if i + 1 == len(items) else ",")
        if len(line) + len(text) + 1 > 118:
            out.append(line.rstrip())
            line = " " * len(head)
        line += text + " "
    return out + [line.rstrip()]


def docstrings(lines):
    """Returns the sentences and the examples of each method. The examples are not generated."""
    found, name = {}, None
    for line in lines:
        begin = re.match(r"    def (\w+)\(", line)
        if begin:
            name, found[begin.group(1)] = begin.group(1), ([], [])
        elif name and line.strip().startswith('"""') and not found[name][0] and len(line.strip()) > 3:
            found[name][0].append(line.strip()[3:])
        elif name and found[name][0]:
            stripped = line.strip()
            if found[name][1] or stripped.startswith(">>>"):
                found[name][1].append(line)
                if stripped == '"""':
                    name = None
            elif not stripped or re.match(r"[a-z_]+: |    ", line[8:]):
                found[name][0].append("")
            elif found[name][0][-1] != "":
                found[name][0].append(stripped)
    return found


def python(params, lines):
    texts, out = docstrings(lines), []
    for function in functions(params):
        assert function in texts, (f"function {function} of daemon/planner/params.c has no method in "
                                   "clients/python/reach/__init__.py: write one with a sentence and an example")
        sentences, examples = texts[function]
        needed, optional, docs, sent = [], [], [], []
        for param, use in of(params, function):
            name, kind = param["name"], annotation(function, param, use)
            if use["needed"]:
                needed.append(f"{name}: Optional[{kind}] = None" if use["unless_alone"] else f"{name}: {kind}")
            else:
                optional.append(f"{name}: Optional[{kind}] = None")
            docs += textwrap.wrap(f"{name}: {about(param, use)}", 110, initial_indent=" " * 8, subsequent_indent=" " * 12,
                                  break_on_hyphens=False)
            sent.append(f"{name}={name}")
        kind = f"answers.{function.capitalize()}"
        out += filled(f"    def {function}(", ["self", "gpu: GpuName", *needed, *(["*", *optional] if optional else [])], f") -> {kind}:")
        out += [*wrapped('"""' + " ".join(s for s in sentences if s), 118, " " * 8), "", *docs, "", *examples]
        out += filled("        return self._of_gpu(", [kind, f'"{function}"', "gpu", *sent], ")") + [""]
    return out[:-1]


# ---- docs/man/reachctl.1, packaging/completion ---------------------------------------------------

def option(param):
    return param["name"].replace("_", "-")


def sentences_of(text):
    """Each on a line of its own, as in a page of mdoc."""
    text = re.sub(r"\. (?=[A-Z])", ".\n", text).replace("\\", "\\e")
    return [part for line in text.split("\n") for part in textwrap.wrap(line, 100, break_on_hyphens=False)]


def man(params, _):
    out = []
    for param in params[1:]:  # the bytes are operands
        value = "Cm " + " | ".join(param["words"]) if param["words"] else f"Ar {param['operand']}" if param["operand"] else ""
        out.append(f".It Fl -{option(param)} {value}".rstrip())
        by_text = {}
        for function, use in param["uses"].items():
            by_text.setdefault(use["about"] or param["about"], []).append(function)
        for text, functions in by_text.items():
            out += [".Ic " + " , ".join(functions) + " :", *sentences_of(text)]
            for added in sorted({additions(param, param["uses"][f]) for f in functions} - {""}):
                takers = [f for f in functions if additions(param, param["uses"][f]) == added]
                out += [".Ic " + " , ".join(takers) + " :"] if len(takers) < len(functions) else []
                out += sentences_of(added.strip())
        if param["default"] not in (None, "false"):
            out.append(f"The default is {param['default']}.")
    return out


def bash(params, _):
    return [f"""    --{option(p)}) mapfile -t COMPREPLY < <(compgen -W '{" ".join(p["words"])}' -- "$cur") && return ;;"""
            for p in params if p["words"]]


def zsh(params, _):
    return [f"--{option(p)}) compadd {' '.join(p['words'])}; return ;;" for p in params if p["words"]]


# ---- clients/c/reach.h ---------------------------------------------------------------------------

def comment(text):
    lines = textwrap.wrap(text, 90, break_on_hyphens=False)
    return [f"    {'/*' if i == 0 else ' *'} {line}{' */' if i + 1 == len(lines) else ''}" for i, line in enumerate(lines)]


def members(function):
    def lines(params, _):
        out = []
        for param, use in of(params, function):
            if not use["member"]:
                continue
            text = param["about"] if use["form"] == "items" else use["about"] or param["about"]
            if param["kind"] == "share":
                text = f"1 minus {text[0].lower()}{text[1:]}"
            elif param["kind"] in ("real", "count") and param["default"]:
                text += f" 0 means {param['default']}."
            kind = f"enum reach_{param['name']}" if param["type"] == "enum" else param["type"]
            out += comment(text) + [f"    {kind} {use['member']};"]
        return out
    return lines


# ---- clients/c/question.c ------------------------------------------------------------------------

def offsets(params, _):
    out = ["/* clang-format off */"]  # it lays out a list of any length in columns
    for function, struct in STRUCTS.items():
        members = [use["member"] for _, use in of(params, function) if use["member"]]
        out += [f"static const size_t {function}_offsets[] = {{",
                *(f"    offsetof(struct {struct}, {member})," for member in members), "};"]
    return out + ["/* clang-format on */"]


class Openapi(dict):
    """The part of each function of the planner."""

    def __missing__(self, function):
        return openapi(function)


PARTS = {"api/openapi.yaml": Openapi(),
         "clients/python/reach/__init__.py": {"methods": python},
         "docs/man/reachctl.1": {"parameters": man},
         "packaging/completion/reachctl.bash": {"words": bash},
         "packaging/completion/reachctl.zsh": {"words": zsh},
         "clients/c/reach.h": {function: members(function) for function in STRUCTS},
         "clients/c/question.c": {"offsets": offsets}}
