"""The campaign: hostile files, kills, full disks, two writers, and originals that must stay as they are.

`make torture` runs it; docs/robustness.md says what it holds the package to. Everything random comes from a seed, the
name of a part and the number of a case, so that each case can be repeated alone.
"""
