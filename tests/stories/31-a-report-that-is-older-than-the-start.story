# A partition is starting at consumer 2 when a more urgent plan wants it elsewhere. The next report was
# written before the start arrived, so the missing partition means nothing; only the acknowledgement of
# the stop releases the next start.
settings consumers_max=3 vanish_after_measurements=1
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: no consumer is deployed yet
  = Sentinel
speeds a-0=50 a-1=40 b-0=50 c-0=10
  partition_appeared: 4 partitions appeared
tick +500
  > pack a-0=50 a-1=40 b-0=50 c-0=10 given Assignment()
  = Reassign
packed 1: a-0 a-1; 2: b-0; 3: c-0
  plan_made: plan 2 (unread_partition): no consumer reads a-0, a-1, b-0, c-0; 4 partitions on 3 consumers, 0 moves of 0 B/s, 4 starts, 3 to create, 0 to empty
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
  > start at 1: a-0@1.1 a-1@1.2 (plan 2)
consumer 2 reports
  > save
  > start at 2: b-0@1.3 (plan 2)
consumer 3 reports
  > save
  > start at 3: c-0@1.4 (plan 2)
consumer 1 started a-0@1.1 a-1@1.2
consumer 2 started b-0@1.3
consumer 3 started c-0@1.4
  plan_done: plan 2 is done after 0 s
  > save
  = Sentinel
3000 ms pass
speeds a-0=90 a-1=40 b-0=50 c-0=10
tick +500
  > pack a-0=90 a-1=40 b-0=50 c-0=10 given Assignment(1: [a-0 a-1], 2: [b-0], 3: [c-0])
  = Reassign
packed 1: a-0; 2: b-0 a-1; 3: c-0
  plan_made: plan 3 (over_capacity): consumer 1 is over capacity: 130 of 100 B/s; 4 partitions on 3 consumers, 1 move of 40 B/s, 0 starts, 0 to create, 0 to empty
  > save
  > stop at 1: a-1@1.2 (plan 3)
  = Group Management
consumer 1 stopped a-1@1.2
  > save
  > start at 2: a-1@1.5 (plan 3)
2500 ms pass
speeds a-0=90 a-1=40 b-0=95 c-0=10
tick +1000
  plan_overtaken: plan 3 is overtaken: consumer 2 is over capacity: 135 of 100 B/s
  > pack a-0=90 a-1=40 b-0=95 c-0=10 given Assignment(1: [a-0], 2: [a-1 b-0], 3: [c-0])
  > start at 2: a-1@1.5 (plan 3)
  = Reassign
packed 1: a-0; 2: b-0; 3: a-1 c-0
  plan_made: plan 4 (over_capacity): consumer 2 is over capacity: 135 of 100 B/s; 4 partitions on 3 consumers, 1 move of 40 B/s, 0 starts, 0 to create, 0 to empty
  > save
  > stop at 2: a-1@1.5 (plan 4)
  = Group Management
consumer 2 reports b-0@1.3
consumer 2 stopped a-1@1.5
  > save
  > start at 3: a-1@1.6 (plan 4)
consumer 3 started a-1@1.6
  plan_done: plan 4 is done after 0 s
  > save
  = Sentinel
