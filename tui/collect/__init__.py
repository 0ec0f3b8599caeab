"""The only readers of this machine: NVML, /proc, the cgroup, the disks."""
