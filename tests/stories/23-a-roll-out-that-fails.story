# The replacement does not come up: the roll-out is rolled back and says so; the group stays as it was.
settings creation_timeout=5s
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
tick +500
consumer 1 reports orders-0@1.1 orders-1@1.2
consumer 2 reports orders-2@1.3
the controller hears itself for 3000 ms
consumer 1 reports orders-0@1.1 orders-1@1.2
consumer 2 reports orders-2@1.3
the controller hears itself for 2000 ms
  > list deployments
consumer 1 reports orders-0@1.1 orders-1@1.2
consumer 2 reports orders-2@1.3
deployed: 1 2 3/1
the controller hears itself for 1000 ms
  consumer_fenced: consumer 3 did not come up within 5 s: fenced, 0 partitions to start elsewhere
  > save
  > delete consumer 3
tick +500
  rolled_back: version 1 is rolled back: the replacement of consumer 1 did not come up; version 2 is the former one
  request_answered: request u1: in_progress, rolled back: the replacement of consumer 1 did not come up
  request_answered: request u1: failed, rolled back: the replacement of consumer 1 did not come up
  > deploy as before, as version 2
  > save
  > answer u1: in_progress
  > answer u1: failed
request u2: update
  request_answered: request u2: accepted, version 3 is tried first, then one by one
  > save
  > try the deployment of version 3
  > answer u2: accepted
