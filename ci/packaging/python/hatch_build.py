"""Gives the wheel its platform tag: it has programs in it, and fits every Python 3."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformTag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['PENSTOCK_WHEEL_PLATFORM']}"
