"""From evidence to findings, a judgement and figures: pure functions."""
