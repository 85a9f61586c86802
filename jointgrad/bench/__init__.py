"""The benchmark behind `jointgrad bench`: suites, the peers they run beside us, and what is shown of them."""
