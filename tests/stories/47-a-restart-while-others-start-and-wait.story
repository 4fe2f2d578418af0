# A controller restarts while one consumer still starts and another one waits for the lake before it can
# answer. Neither is told to end: the first owns nothing, the second says that it is alive.
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
speeds orders-0=40 orders-1=40 orders-2=40 orders-3=90
  partition_appeared: 1 partition appeared
3000 ms pass
tick +500
  > pack orders-0=40 orders-1=40 orders-2=40 orders-3=90 given Assignment(1: [orders-0 orders-1], 2: [orders-2])
  = Reassign
packed 1: orders-0 orders-1; 2: orders-2; 3: orders-3
  plan_made: plan 3 (unread_partition): no consumer reads orders-3; 4 partitions on 3 consumers, 0 moves of 0 B/s, 1 start, 1 to create, 0 to empty
  consumer_created: consumer 3 is created
  > save
  > create consumer 3
  = Group Management
a controller starts with epoch 2 with its state file
  > save
  > list deployments
  = Synchronize
deployed: 1 2 3
  > query 1
  > query 2
  > query 3
consumer 1 answers orders-0@1.1 orders-1@1.2
tick +1000
  > query 2
  > query 3
the heartbeat comes back
the controller hears itself for 5000 ms
  > query 2
  > query 3
  > query 2
  > query 3
  > query 2
  > query 3
  > query 2
  > query 3
  > query 2
  > query 3
consumer 2 reports orders-2@1.3, waits_for=lake
the controller hears itself for 3000 ms
  > query 2
  > query 3
  > query 2
  > query 3
  > list deployments
  > query 2
  > query 3
  > list deployments
deployed: 1 2 3
the controller hears itself for 3000 ms
  > query 2
  > query 3
  > query 2
  > query 3
  > query 2
  > query 3
consumer 2 answers orders-2@1.3
the controller hears itself for 1000 ms
  > query 3
  synchronised: 2 consumers answered, 3 partitions owned
  > save
  > create consumer 3
  = Sentinel
