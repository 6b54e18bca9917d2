"""The process on the device: it trains what a request asks for, measures it, and answers in JSON lines.

It needs the standard library, `ampere.core` and the training runtime found on the device; Python 3.8 and later.
"""
