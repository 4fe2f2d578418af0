"""The commands of the `penstock` program, one file each. No other package imports this one."""
