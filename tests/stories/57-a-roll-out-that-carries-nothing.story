# A new consumer starts its partitions and then carries nothing, without a reason: after the time
# that a start may take it is rolled back. One that says what it waits for is waited for.
settings creation_timeout=2s
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
request u1: update
  request_answered: request u1: accepted, version 1 is tried first, then one by one
  > save
  > try the deployment of version 1
  > answer u1: accepted
the new deployment is not tried: its image is another one
  roll_out: version 1 was not tried before: its image is another one
  > deploy version 1 from now on
  > save
tick +500
  consumer_created: consumer 3 is created
  > save
  > create consumer 3 version 1
consumer 3 reports
  > save
tick +500
  plan_made: plan 3 (roll_out): consumer 1 is replaced by one of version 1; 3 partitions on 2 consumers, 2 moves of 80 B/s, 0 starts, 0 to create, 1 to empty
  > save
  > stop at 1: orders-0@1.1 orders-1@1.2 (plan 3)
  = Group Management
consumer 1 stopped orders-0@1.1 orders-1@1.2
  > save
  > start at 3: orders-0@1.4 orders-1@1.5 (plan 3)
consumer 3 started orders-0@1.4 orders-1@1.5
  plan_done: plan 3 is done after 0 s
  consumer_removed: consumer 1 is removed: it has no partitions any more
  > save
  > delete consumer 1
  = Sentinel
consumer 1 is deleted
consumer 2 reports orders-2@1.3
consumer 3 reports orders-0@1.4 orders-1@1.5, behind_records=7 waits_for=lake waits_ms=100
the controller hears itself for 2000 ms
  request_answered: request u1: in_progress, 1 consumer of the old version is left
  > answer u1: in_progress
consumer 2 reports orders-2@1.3
consumer 3 reports orders-0@1.4 orders-1@1.5, behind_records=7 waits_for=lake waits_ms=2100
the controller hears itself for 2000 ms
deployed: 2 3/1
consumer 2 reports orders-2@1.3
consumer 3 reports orders-0@1.4 orders-1@1.5, behind_records=7
tick +500
  rolled_back: version 1 is rolled back: consumer 3 carries nothing; version 2 is the former one
  request_answered: request u1: in_progress, rolled back: consumer 3 carries nothing
  consumer_created: consumer 1 is created
  > deploy as before, as version 2
  > save
  > answer u1: in_progress
  > create consumer 1 version 2
