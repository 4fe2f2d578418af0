# One consumer stops two partitions. They start at two others when the stop is acknowledged.
settings consumers_max=3
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: no consumer is deployed yet
  = Sentinel
speeds a-0=30 a-1=30 a-2=30 b-0=60 c-0=60
  partition_appeared: 5 partitions appeared
tick +500
  > pack a-0=30 a-1=30 a-2=30 b-0=60 c-0=60 given Assignment()
  = Reassign
packed 1: a-0 a-1 a-2; 2: b-0; 3: c-0
  plan_made: plan 2 (unread_partition): no consumer reads a-0, a-1, a-2, b-0, c-0; 5 partitions on 3 consumers, 0 moves of 0 B/s, 5 starts, 3 to create, 0 to empty
  consumer_created: consumer 1 is created
  consumer_created: consumer 2 is created
  consumer_created: consumer 3 is created
  > save
  > create consumer 1
  > create consumer 2
  > create consumer 3
  = Group Management
consumer 1 reports
  > save
  > start at 1: a-0@1.1 a-1@1.2 a-2@1.3 (plan 2)
consumer 2 reports
  > save
  > start at 2: b-0@1.4 (plan 2)
consumer 3 reports
  > save
  > start at 3: c-0@1.5 (plan 2)
consumer 1 started a-0@1.1 a-1@1.2 a-2@1.3
consumer 2 started b-0@1.4
consumer 3 started c-0@1.5
  plan_done: plan 2 is done after 0 s
  > save
  = Sentinel
3000 ms pass
speeds a-0=90 a-1=30 a-2=30 b-0=60 c-0=60
tick +500
  > pack a-0=90 a-1=30 a-2=30 b-0=60 c-0=60 given Assignment(1: [a-0 a-1 a-2], 2: [b-0], 3: [c-0])
  = Reassign
packed 1: a-0; 2: a-1 b-0; 3: a-2 c-0
  plan_made: plan 3 (over_capacity): consumer 1 is over capacity: 150 of 100 B/s; 5 partitions on 3 consumers, 2 moves of 60 B/s, 0 starts, 0 to create, 0 to empty
  > save
  > stop at 1: a-1@1.2 a-2@1.3 (plan 3)
  = Group Management
consumer 1 stopped a-1@1.2 a-2@1.3
  > save
  > start at 2: a-1@1.6 (plan 3)
  > start at 3: a-2@1.7 (plan 3)
consumer 3 started a-2@1.7
consumer 2 started a-1@1.6
  plan_done: plan 3 is done after 0 s
  > save
  = Sentinel
