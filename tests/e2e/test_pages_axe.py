#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What Deque's accessibility rules (axe-core) say of the pages of `sonde up`."""
from pages_in_chromium import InChromium
from capabilities import AXE_CORE, need
from sonde import ROOT


class Accessibility(InChromium):
    @classmethod
    def setUpClass(cls):
        need("axe-core")
        super().setUpClass()

    def test_axe_finds_nothing(self):
        source = (ROOT / AXE_CORE).read_text()
        # Dark and light differ in colors only.
        rules = {False: "['wcag2a', 'wcag2aa', 'best-practice']", True: "{type: 'rule', values: ['color-contrast']}"}
        for path in self.one_of_each():
            for is_dark in (False, True):
                with self.subTest(path, is_dark=is_dark):
                    self.visit(path, is_dark=is_dark)
                    self.browser.command("Runtime.evaluate", expression=source)
                    found = self.browser.ask_promise(f"axe.run({{runOnly: {rules[is_dark]}}}).then(r => r.violations.map(v => "
                                                     "[v.id, v.nodes.length, v.nodes[0].html.slice(0, 200)]))")
                    self.assertEqual(found, [])


if __name__ == "__main__":
    import tap
    tap.main()
