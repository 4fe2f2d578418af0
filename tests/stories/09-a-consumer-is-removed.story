# Fewer consumers are enough. A consumer is emptied first, and deleted when it owns nothing.
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
speeds orders-0=30 orders-1=30 orders-2=30
tick +500
60000 ms pass
consumer 1 reports orders-0@1.1 orders-1@1.2
consumer 2 reports orders-2@1.3
speeds orders-0=30 orders-1=30 orders-2=30
tick +500
  > pack orders-0=30 orders-1=30 orders-2=30 given Assignment(1: [orders-0 orders-1], 2: [orders-2])
  > list deployments
  = Reassign
packed 1: orders-0 orders-1 orders-2
  plan_made: plan 3 (fewer_would_do): 1 consumer may do instead of 2: 90 of 100 B/s; 3 partitions on 1 consumer, 1 move of 30 B/s, 0 starts, 0 to create, 1 to empty
  > save
  > stop at 2: orders-2@1.3 (plan 3)
  = Group Management
consumer 2 stopped orders-2@1.3
  > save
  > start at 1: orders-2@1.4 (plan 3)
consumer 1 started orders-2@1.4
  plan_done: plan 3 is done after 0 s
  consumer_removed: consumer 2 is removed: it has no partitions, and there are enough spares
  > save
  > delete consumer 2
  = Sentinel
consumer 2 is deleted
