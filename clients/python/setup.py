"""A wheel for every Python 3 of one platform: nothing in it is compiled against Python. pyproject.toml has the
rest."""
import os

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

if not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), "reach", "lib")):
    raise SystemExit("reach/lib with libreach is missing: build the wheel with `make wheel` and install the wheel, "
                     "or put clients/python on PYTHONPATH after `make`")


class WithLibraries(Distribution):
    def has_ext_modules(self):
        return True


class ForEveryPython3(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(distclass=WithLibraries, cmdclass={"bdist_wheel": ForEveryPython3})
