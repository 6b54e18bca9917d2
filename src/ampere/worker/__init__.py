"""The process on the device: trains what it is asked to, measures it, answers in JSON lines.

Standard library, `ampere.core` and the training runtime found on the device; Python 3.8 and later.
"""
