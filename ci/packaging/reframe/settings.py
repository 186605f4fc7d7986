"""An example of a site's configuration for ReFrame: this machine, and a cluster under Slurm whose srun starts MPI ranks through PMIx."""

site_configuration = {
    "systems": [
        {
            "name": "testbed",
            "descr": "this machine, and the cluster of ci/testbed/slurm",
            "hostnames": [".*"],
            "partitions": [
                {"name": "local", "scheduler": "local", "launcher": "local", "environs": ["builtin"]},
                # `squeue` rather than `slurm`: it needs no accounting (sacct).
                {"name": "slurm", "scheduler": "squeue", "launcher": "srun", "environs": ["builtin"], "max_jobs": 1, "sched_options": {"use_nodes_option": True}},
            ],
        }
    ],
}
