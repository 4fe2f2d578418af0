# A new consumer needs a new node and a large image. The deployment says that it still starts, so it is
# waited for beyond the usual time; and the next one may take as long.
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
speeds orders-0=40
  partition_appeared: 1 partition appeared
tick +500
  > pack orders-0=40 given Assignment()
  = Reassign
packed 1: orders-0
  plan_made: plan 2 (unread_partition): no consumer reads orders-0; 1 partition on 1 consumer, 0 moves of 0 B/s, 1 start, 1 to create, 0 to empty
  consumer_created: consumer 1 is created
  > save
  > create consumer 1
  = Group Management
the controller hears itself for 5000 ms
  > list deployments
deployed: 1*
the controller hears itself for 10000 ms
  > list deployments
  > list deployments
  > list deployments
  > list deployments
  > list deployments
  > list deployments
deployed: 1*
the controller hears itself for 2000 ms
consumer 1 reports
  > save
  > start at 1: orders-0@1.1 (plan 2)
consumer 1 started orders-0@1.1
  plan_done: plan 2 is done after 17 s
  > save
  = Sentinel
speeds orders-0=40 orders-1=80
  partition_appeared: 1 partition appeared
tick +500
  > pack orders-0=40 orders-1=80 given Assignment(1: [orders-0])
  = Reassign
packed 1: orders-0; 2: orders-1
  plan_made: plan 3 (unread_partition): no consumer reads orders-1; 2 partitions on 2 consumers, 0 moves of 0 B/s, 1 start, 1 to create, 0 to empty
  consumer_created: consumer 2 is created
  > save
  > create consumer 2
  = Group Management
the controller hears itself for 3000 ms
consumer 1 reports orders-0@1.1
the controller hears itself for 3000 ms
  read_meanwhile: 1 partition of consumers that are late to come up (2): read by others meanwhile
  > save
  > start at 1: orders-1@1.2 (plan 3)
  > start at 1: orders-1@1.2 (plan 3)
  > list deployments
consumer 1 reports orders-0@1.1
deployed: 1 2
the controller hears itself for 3000 ms
  > start at 1: orders-1@1.2 (plan 3)
  consumer_fenced: consumer 2 did not come up within 6 s: fenced, 0 partitions to start elsewhere
  plan_overtaken: plan 3 is overtaken: a consumer that the plan needs is lost
  > save
  > delete consumer 2
  > pack orders-0=40 orders-1=80 given Assignment(1: [orders-0])
  = Reassign
  > start at 1: orders-1@1.2 (plan 3)
  > start at 1: orders-1@1.2 (plan 3)
consumer 2 reports
