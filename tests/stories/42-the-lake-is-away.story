# The lake is away for 2 min while a partition moves. Its new consumer cannot read the ledger, and so
# cannot acknowledge the start: it says what it waits for, and is waited for.
settings acknowledge=20s command_resend=60s
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: no consumer is deployed yet
  = Sentinel
speeds orders-0=40 orders-1=40 orders-2=40
  partition_appeared: 3 partitions appeared
tick +500
  > pack orders-0=40 orders-1=40 orders-2=40 given Assignment()
  = Reassign
packed 1: orders-0 orders-1; 2: orders-2
  plan_made: plan 2 (unread_partition): no consumer reads orders-0, orders-1, orders-2; 3 partitions on 2 consumers, 0 moves of 0 B/s, 3 starts, 2 to create, 0 to empty
  consumer_created: consumer 1 is created
  consumer_created: consumer 2 is created
  > save
  > create consumer 1
  > create consumer 2
  = Group Management
consumer 1 reports
  > save
  > start at 1: orders-0@1.1 orders-1@1.2 (plan 2)
consumer 2 reports
  > save
  > start at 2: orders-2@1.3 (plan 2)
consumer 1 started orders-0@1.1 orders-1@1.2
consumer 2 started orders-2@1.3
  plan_done: plan 2 is done after 0 s
  > save
  = Sentinel
3000 ms pass
speeds orders-0=40 orders-1=80 orders-2=20
tick +500
  > pack orders-0=40 orders-1=80 orders-2=20 given Assignment(1: [orders-0 orders-1], 2: [orders-2])
  = Reassign
packed 1: orders-0; 2: orders-1 orders-2
  plan_made: plan 3 (over_capacity): consumer 1 is over capacity: 120 of 100 B/s; 3 partitions on 2 consumers, 1 move of 80 B/s, 0 starts, 0 to create, 0 to empty
  > save
  > stop at 1: orders-1@1.2 (plan 3)
  = Group Management
consumer 1 stopped orders-1@1.2
  > save
  > start at 2: orders-1@1.4 (plan 3)
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=5000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=5000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=10000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=10000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=15000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=15000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=20000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=20000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=25000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=25000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=30000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=30000
the controller hears itself for 5000 ms
  > list deployments
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=35000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=35000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=40000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=40000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=45000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=45000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=50000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=50000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=55000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=55000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=60000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=60000
the controller hears itself for 5000 ms
  > list deployments
  > start at 2: orders-1@1.4 (plan 3)
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=65000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=65000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=70000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=70000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=75000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=75000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=80000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=80000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=85000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=85000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=90000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=90000
the controller hears itself for 5000 ms
  > list deployments
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=95000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=95000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=100000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=100000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=105000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=105000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=110000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=110000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=115000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=115000
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1, waits_for=lake waits_ms=120000
consumer 2 reports orders-2@1.3, waits_for=lake waits_ms=120000
the controller hears itself for 5000 ms
  > list deployments
  > start at 2: orders-1@1.4 (plan 3)
consumer 2 started orders-1@1.4
  plan_done: plan 3 is done after 2 min
  > save
  = Sentinel
