# A hand-over is slow, and meanwhile a consumer is over capacity: the new plan does not wait for it.
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
speeds a-0=50 a-1=40 b-0=50 b-1=40
  partition_appeared: 4 partitions appeared
tick +500
  > pack a-0=50 a-1=40 b-0=50 b-1=40 given Assignment()
  = Reassign
packed 1: a-0 a-1; 2: b-0 b-1
  plan_made: plan 2 (unread_partition): no consumer reads a-0, a-1, b-0, b-1; 4 partitions on 2 consumers, 0 moves of 0 B/s, 4 starts, 2 to create, 0 to empty
  consumer_created: consumer 1 is created
  consumer_created: consumer 2 is created
  > save
  > create consumer 1
  > create consumer 2
  = Group Management
consumer 1 reports
  > save
  > start at 1: a-0@1.1 a-1@1.2 (plan 2)
consumer 2 reports
  > save
  > start at 2: b-0@1.3 b-1@1.4 (plan 2)
consumer 1 started a-0@1.1 a-1@1.2
consumer 2 started b-0@1.3 b-1@1.4
  plan_done: plan 2 is done after 0 s
  > save
  = Sentinel
3000 ms pass
speeds a-0=90 a-1=40 b-0=50 b-1=40
tick +500
  > pack a-0=90 a-1=40 b-0=50 b-1=40 given Assignment(1: [a-0 a-1], 2: [b-0 b-1])
  = Reassign
packed 1: a-0; 2: b-0 b-1; 3: a-1
  plan_made: plan 3 (over_capacity): consumer 1 is over capacity: 130 of 100 B/s; 4 partitions on 3 consumers, 1 move of 40 B/s, 0 starts, 1 to create, 0 to empty
  consumer_created: consumer 3 is created
  > save
  > create consumer 3
  = Group Management
consumer 1 reports a-0@1.1 a-1@1.2
consumer 2 reports b-0@1.3 b-1@1.4
2500 ms pass
speeds a-0=90 a-1=40 b-0=95 b-1=40
tick +1000
  plan_overtaken: plan 3 is overtaken: consumer 2 is over capacity: 135 of 100 B/s
  > pack a-0=90 a-1=40 b-0=95 b-1=40 given Assignment(1: [a-0], 2: [b-0 b-1], 3: [a-1])
  = Reassign
packed 1: a-0; 2: b-0; 3: a-1 b-1
  plan_made: plan 4 (over_capacity): consumer 2 is over capacity: 135 of 100 B/s; 4 partitions on 3 consumers, 2 moves of 80 B/s, 0 starts, 0 to create, 0 to empty
  > save
  = Group Management
consumer 3 reports
  > save
  > stop at 1: a-1@1.2 (plan 4)
  > stop at 2: b-1@1.4 (plan 4)
