"""The story of a group whose two topics cost differently, for tests that begin after it."""

# Two topics: of `slow` one consumer carries a tenth of what it carries of `plain`.
TWO_TOPICS = (
    "settings capacity=auto calibrated.plain=100 calibrated.slow=10",
    "a controller starts with epoch 1",
    "deployed:",
    "deployed:",
    "speeds plain-0=40 plain-1=40 slow-0=4",
    "tick +500",
    "packed 1: plain-0 plain-1; 2: slow-0",
    "consumer 1 reports",
    "consumer 2 reports",
    "consumer 1 started plain-0@1.1 plain-1@1.2",
    "consumer 2 started slow-0@1.3",
)
