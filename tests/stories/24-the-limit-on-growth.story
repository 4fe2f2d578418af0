# A sudden load asks for many consumers: they are created as fast as the limit allows, no faster.
settings creations_per_minute_max=2 silence=100s
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: no consumer is deployed yet
  = Sentinel
speeds a-0=90 b-0=90 c-0=90 d-0=90
  partition_appeared: 4 partitions appeared
tick +500
  > pack a-0=90 b-0=90 c-0=90 d-0=90 given Assignment()
  = Reassign
packed 1: a-0; 2: b-0; 3: c-0; 4: d-0
  plan_made: plan 2 (unread_partition): no consumer reads a-0, b-0, c-0, d-0; 4 partitions on 4 consumers, 0 moves of 0 B/s, 4 starts, 4 to create, 0 to empty
  consumer_created: consumer 1 is created
  consumer_created: consumer 2 is created
  > save
  > create consumer 1
  > create consumer 2
  = Group Management
consumer 1 reports
  > save
  > start at 1: a-0@1.1 (plan 2)
consumer 2 reports
  > save
  > start at 2: b-0@1.2 (plan 2)
consumer 1 started a-0@1.1
consumer 2 started b-0@1.2
tick +59000
  > list deployments
tick +1000
  consumer_created: consumer 3 is created
  consumer_created: consumer 4 is created
  > save
  > create consumer 3
  > create consumer 4
