"""lib_scripts.py: the scripts of clients/kubernetes and clients/hwloc, which run the reachctl under test."""
import os

from common import REACHCTL, ROOT

NFD = os.path.join(ROOT, "clients", "kubernetes", "reach-nfd")
DRA = os.path.join(ROOT, "clients", "kubernetes", "reach-dra")
HWLOC = os.path.join(ROOT, "clients", "hwloc", "reach-hwloc")

os.environ["PATH"] = os.path.dirname(REACHCTL) + os.pathsep + os.environ["PATH"]
