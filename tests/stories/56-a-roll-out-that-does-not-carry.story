# The first consumer of the new version stops its partitions because of its transformation: the
# roll-out is rolled back, and a consumer that is deployed as before takes over.
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
the new deployment works
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
consumer 3 stopped orders-0@1.4, transformation_failed
  partition_failed: orders-0 stopped (transformation_failed); tried again in 1 min
  > save
tick +500
  rolled_back: version 1 is rolled back: orders-0 stopped at consumer 3 (transformation_failed); version 2 is the former one
  request_answered: request u1: in_progress, rolled back: orders-0 stopped at consumer 3 (transformation_failed)
  consumer_created: consumer 1 is created
  > deploy as before, as version 2
  > save
  > answer u1: in_progress
  > create consumer 1 version 2
consumer 3 stopped orders-1@1.5, schema_changed
  partition_failed: orders-1 stopped (schema_changed); tried again in 1 min
  > save
consumer 1 starts again
consumer 1 reports
  > save
tick +500
  plan_made: plan 4 (roll_out): consumer 3 is replaced by one of version 2; 3 partitions on 2 consumers, 0 moves of 0 B/s, 2 starts, 0 to create, 0 to empty
  plan_done: plan 4 is done after 0 s
  consumer_removed: consumer 3 is removed: it has no partitions any more
  > save
  > delete consumer 3
consumer 3 is deleted
tick +500
  request_answered: request u1: in_progress, 0 consumers of the failed version are left
  request_answered: request u1: failed, rolled back: orders-0 stopped at consumer 3 (transformation_failed)
  > save
  > answer u1: in_progress
  > answer u1: failed
tick +500
  > pack orders-0=40 orders-1=40 orders-2=40 given Assignment(1: [orders-0 orders-1], 2: [orders-2])
  = Reassign
packed 1: orders-0 orders-1; 2: orders-2
  plan_made: plan 5 (unread_partition): no consumer reads orders-0, orders-1; 3 partitions on 2 consumers, 0 moves of 0 B/s, 2 starts, 0 to create, 0 to empty
  > save
  > start at 1: orders-0@1.6 orders-1@1.7 (plan 5)
  = Group Management
consumer 1 started orders-0@1.6 orders-1@1.7
  plan_done: plan 5 is done after 0 s
  > save
  = Sentinel
request u2: update
  request_answered: request u2: accepted, version 3 is tried first, then one by one
  > save
  > try the deployment of version 3
  > answer u2: accepted
the new deployment cannot work: The transformation mine:clean cannot be imported
  request_answered: request u2: refused, The transformation mine:clean cannot be imported
  > save
  > answer u2: refused
tick +500
