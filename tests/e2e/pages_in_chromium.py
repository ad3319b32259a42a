# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests that visit the pages of a simulated cluster in a real Chromium."""
from browser import Browser
from capabilities import need
from pages import OfDemo


class InChromium(OfDemo):
    """A browser that visits its pages."""

    @classmethod
    def setUpClass(cls):
        need("chromium")
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)

    def visit(self, path, **look):
        self.browser.look(**look)
        visit = self.browser.open(self.up.url + path)
        visit.settle()
        self.assertEqual((visit.status, visit.complaints), (200, []))
        return visit
